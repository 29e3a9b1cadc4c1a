# cmake -DOUT=file.c -DNAME=array -DTEXTS="a;b" -P EmbedSource.cmake: the files, one after the other, as the C text
# `NAME` of `NAME_size` bytes and a closing NUL: one CUDA source.
set(all "")
foreach(text ${TEXTS})
  file(READ ${text} hex HEX)
  string(APPEND all "${hex}0a")
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${all}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n" bytes "${bytes}")
string(LENGTH "${all}" digits)
math(EXPR size "${digits} / 2")
file(WRITE ${OUT} "extern const char ${NAME}[];\nextern const unsigned long long ${NAME}_size;\n"
     "const char ${NAME}[] = {\n${bytes}0};\nconst unsigned long long ${NAME}_size = ${size};\n")
