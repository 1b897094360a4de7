// An NCCL topology file as XML: pugixml elements with their lines and columns, and attributes read strictly. For
// readers/nccl_xml.cc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/base/xml_checks.h"

namespace tandem::nccl {

// Returns "0000:C1:00.0" as a number, as NCCL compares them, or nothing when the text has characters other than hex
// digits, ':' and '.'.
std::optional<std::uint64_t> bus_number(std::string_view text);

class Document {
 public:
  // Throws InputError when `text` is not XML.
  Document(std::string_view text, std::string file, Diagnostics& diagnostics);

  const std::string& file() const { return file_; }
  pugi::xml_node root() const { return document_.document_element(); }
  pugi::xml_node top() const { return document_; }
  std::string comments() const;  // those outside of all elements

  // Read attributes. Missing or malformed ones are reported, and read as "" or `otherwise`.
  std::string required_text(const pugi::xml_node& element, const char* attribute);
  std::int64_t required_number(const pugi::xml_node& element, const char* attribute, std::int64_t otherwise = 0);
  // Returns an id such as "0x10de" as a number, or nothing when the attribute is missing or is not a hex number.
  std::optional<unsigned> id(const pugi::xml_node& element, const char* attribute) const;
  std::int64_t number(const pugi::xml_node& element, const char* attribute, std::int64_t otherwise);
  double real(const pugi::xml_node& element, const char* attribute, double otherwise);
  // Reports a number of things that no machine has.
  std::int64_t count(const pugi::xml_node& element, const char* attribute, std::int64_t otherwise, std::int64_t least,
                     std::int64_t most);
  // Reports a figure that no machine has; `value` is in the base unit of the dimension, and may be 0.
  void check_quantity(const pugi::xml_node& element, const char* attribute, double value, Dimension dimension);

  // Reports a problem at an element, or at one of its attributes.
  void problem(const pugi::xml_node& element, const std::string& message, std::string_view attribute = "");
  // Adds a note, which is no problem. A note that repeats is listed once, with its count.
  void note(const pugi::xml_node& element, const std::string& message);
  void note(const std::string& message);
  // Notes the attributes and children of an element that are not in these lists.
  void note_unknown(const pugi::xml_node& element, std::initializer_list<std::string_view> attributes,
                    std::initializer_list<std::string_view> children);
  std::vector<std::string> notes() const;

 private:
  struct Note {
    std::string text;
    int line = 0;  // of the first; 0: the file as a whole
    int count = 0;
  };
  static std::string path_of(const pugi::xml_node& element);

  XmlPlaces places_;
  std::string file_;
  Diagnostics& diagnostics_;
  pugi::xml_document document_;
  int problems_ = 0;
  std::vector<Note> notes_;
};

}  // namespace tandem::nccl
