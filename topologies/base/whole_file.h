// Writing files so that nobody finds half of one, whatever ends the program: a kill, a full disk, an exception.
//
// Threads: any, as long as no two write the same file.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace tandem {

// Replaces a file in one step, so that readers find either the whole old or the whole new text. Follows symbolic links,
// and keeps the permissions of a file that exists. A device, a pipe, an open file of a process (/dev/fd/3) and a file
// in a folder that may not be written to are written to directly. If it fails, the file stays as it was. The new text
// is on the disk when the call returns, and so is its name, where the file system can be told to.
//
// Throws Error that names the file and the reason, and what `write` throws unless the stream has failed before.
void replace_file(const std::string& file, const std::function<void(std::ostream&)>& write);
void replace_file(const std::string& file, std::string_view text);
// As replace_file(), but refuses a file that would be written to directly, where a crash could leave half of one.
void replace_file_in_one_step(const std::string& file, std::string_view text);

// Whether a kill may have left a file of this name beside the one that was to be replaced: "report.json.1234.tmp".
bool is_temporary_name(std::string_view name);

// Throws Error if replace_file() could not write the file: before long work rather than after it. Changes nothing.
void check_replaceable(const std::string& file);

// Append to a file, which is created if there is none: the whole text, or nothing. `file` is the name of an open file
// in the Error that they throw.
void append_whole(int descriptor, std::string_view text, const std::string& file);
void append_to_file(const std::string& file, std::string_view text);

// Passes the text of a writer to a stream and flushes it. Throws Error that names the stream's file and the reason.
void write_to(std::ostream& stream, const std::string& name, const std::function<void(std::ostream&)>& write);

}  // namespace tandem
