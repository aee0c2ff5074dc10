# tree-sitter and its Python grammar, compiled from the sdists that script/bootstrap unpacks. The grammar's
# sdist has no headers, so it uses those of the runtime.
set(MP_PYTHON_SOURCES ${PROJECT_SOURCE_DIR}/.venv/src CACHE PATH "Where tree-sitter's sdists are unpacked")
set(runtime ${MP_PYTHON_SOURCES}/tree-sitter-0.24.0/tree_sitter/core/lib)
set(grammar ${MP_PYTHON_SOURCES}/tree_sitter_python-0.23.6/src)
foreach(needed ${runtime}/src/lib.c ${grammar}/parser.c ${grammar}/scanner.c)
  if(NOT EXISTS ${needed})
    message(FATAL_ERROR "tree-sitter is missing (${needed}): run script/bootstrap")
  endif()
endforeach()

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tree-sitter/tree_sitter)
foreach(header parser alloc array)
  configure_file(${runtime}/src/${header}.h ${PROJECT_BINARY_DIR}/tree-sitter/tree_sitter/${header}.h COPYONLY)
endforeach()
# Third-party code: without our warnings, and optimised in every build, because it decides the speed of
# mp-lint.
add_library(mp_tree_sitter STATIC ${runtime}/src/lib.c ${grammar}/parser.c ${grammar}/scanner.c)
target_include_directories(mp_tree_sitter SYSTEM PUBLIC ${runtime}/include
  PRIVATE ${runtime}/src ${PROJECT_BINARY_DIR}/tree-sitter)
target_compile_definitions(mp_tree_sitter PRIVATE _DEFAULT_SOURCE)
target_compile_options(mp_tree_sitter PRIVATE -std=gnu11 -O2 -w)
mp_feature("tree-sitter" TRUE "0.24.0, Python grammar 0.23.6" "")
