# cmake -DOUT=file.c -DTEXTS="a;b" -P embed.cmake: each file as a C array nv_text_<name>, '.' as '_'.
set(code "#include \"headers.h\"\n")
foreach(text ${TEXTS})
  get_filename_component(name ${text} NAME)
  string(MAKE_C_IDENTIFIER ${name} id)
  file(READ ${text} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\n" bytes "${bytes}")
  string(APPEND code "const char nv_text_${id}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${code}")
