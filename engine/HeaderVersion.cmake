# Sets `version` to the number that a header defines as <prefix>_MAJOR, <prefix>_MINOR and <prefix>_PATCH: for libraries
# that say it nowhere else.
function(tandem_header_version version header prefix)
  set(numbers "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "^#define ${prefix}_${part} ")
    string(REGEX REPLACE "[^0-9]" "" number "${line}")
    list(APPEND numbers "${number}")
  endforeach()
  list(JOIN numbers . joined)
  set(${version} ${joined} PARENT_SCOPE)
endfunction()
