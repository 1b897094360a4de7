#include "engine/mpi/build_identity.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <string_view>

namespace tandem::mpi {
namespace {

constexpr std::size_t kAlignment = 4;  // of the parts of a note

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Returns the build id among the notes, in hexadecimal digits; "" if it is not among them.
std::string build_id_in(const char* notes, std::size_t size) {
  ElfW(Nhdr) note{};
  for (std::size_t at = 0; at + sizeof(note) <= size;) {
    std::memcpy(&note, notes + at, sizeof(note));
    const char* name = notes + at + sizeof(note);
    const char* text = name + aligned(note.n_namesz);
    at += sizeof(note) + aligned(note.n_namesz) + aligned(note.n_descsz);
    if (at > size || note.n_type != NT_GNU_BUILD_ID ||
        std::string_view(name, note.n_namesz) != std::string_view("GNU\0", 4))
      continue;
    std::string digits;
    for (std::size_t i = 0; i < note.n_descsz; ++i)
      digits += fmt::format("{:02x}", static_cast<unsigned char>(text[i]));
    return digits;
  }
  return "";
}

// The first entry is the program's own.
int look_at_program(dl_phdr_info* info, std::size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    if (std::string id = build_id_in(notes, part.p_memsz); !id.empty())
      *static_cast<std::string*>(found) = std::move(id);
  }
  return 1;
}

}  // namespace

std::string build_identity() {
  std::string found = "none";
  dl_iterate_phdr(look_at_program, &found);
  return found;
}

}  // namespace tandem::mpi
