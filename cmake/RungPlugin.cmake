# rung_add_plugin(NAME SOURCES file... [LIBS lib...] [OPTIONS flag...])
#
# Builds NAME.so, a rung plugin: no prefix, hidden visibility, exactly one exported symbol, never
# unloaded, all symbols resolved at link time. NAME is <kind>_<plugin>, such as verifier_mylab_check:
# that is the file in which rung looks for `plugin = "mylab_check"` of kind verifier.
# Serves rung's own tree and, through find_package(rung), plugins out of tree.
set(RUNG_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(rung_add_plugin name)
  cmake_parse_arguments(P "" "" "SOURCES;LIBS;OPTIONS" ${ARGN})
  if(CMAKE_C_FLAGS MATCHES "-Ofast|-ffast-math" OR P_OPTIONS MATCHES "-Ofast|-ffast-math")
    message(FATAL_ERROR "rung_add_plugin(${name}): -Ofast and -ffast-math change the host's arithmetic")
  endif()
  add_library(${name} MODULE ${P_SOURCES})
  target_link_libraries(${name} PRIVATE rung::abi ${P_LIBS})
  target_compile_options(${name} PRIVATE ${P_OPTIONS})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
    C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
    INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
    LINK_DEPENDS ${RUNG_CMAKE_DIR}/plugin.map)
  target_link_options(${name} PRIVATE -Wl,--version-script=${RUNG_CMAKE_DIR}/plugin.map -Wl,-z,nodelete)
  # clang's sanitizer runtimes live in the executable, so their symbols stay open in a plugin.
  if(NOT (CMAKE_C_COMPILER_ID MATCHES "Clang" AND CMAKE_C_FLAGS MATCHES "-fsanitize"))
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()
