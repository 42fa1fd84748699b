// The fields of JSON objects, by Boost.JSON's parser without values in between.
#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <deque>
#include <string>
#include <vector>

#include "data/formats/fields.h"
#include "data/formats/json_text.h"

namespace shoal::data {
namespace {

using Kind = TableCell::Kind;
using Error = boost::json::error_code;
using Text = boost::json::string_view;

constexpr size_t kMaxDepth = 64;

// Boost.JSON's handler. Texts point into the record, or into `escaped` if they have escapes.
class FieldHandler {
 public:
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;

  void Begin(std::string_view record, FieldVisitor* visitor) {
    record_ = record;
    visitor_ = visitor;
    path_.clear();
    objects_.clear();
    values_.clear();
    escaped_.clear();
    part_.clear();
    has_part_ = false;
    list_depth_ = 0;
    nested_ = false;
    is_object_ = true;
  }
  bool is_object() const { return is_object_; }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) {
    if (list_depth_ > 0) {
      nested_ = true;
      ++list_depth_;
    } else {
      objects_.push_back(path_.size());
    }
    return true;
  }
  bool on_object_end(size_t, Error&) {
    if (list_depth_ > 0) {
      --list_depth_;
    } else {
      path_.resize(objects_.back());
      objects_.pop_back();
    }
    return true;
  }
  bool on_array_begin(Error&) {
    if (objects_.empty()) is_object_ = false;
    nested_ = nested_ || list_depth_ > 0;
    if (list_depth_++ == 0) {
      values_.clear();
      nested_ = false;
    }
    return true;
  }
  bool on_array_end(size_t, Error&) {
    if (--list_depth_ > 0 || objects_.empty()) return true;
    if (nested_) {
      visitor_->LeftOut(path_);
    } else {
      visitor_->List(path_, values_);
    }
    return true;
  }
  bool on_key_part(Text text, size_t, Error&) {
    part_.append(text.data(), text.size());
    return true;
  }
  bool on_key(Text text, size_t, Error&) {
    if (list_depth_ == 0) {
      path_.resize(objects_.back());
      if (!path_.empty()) path_ += '.';
      path_ += part_;
      path_.append(text.data(), text.size());
    }
    part_.clear();
    return true;
  }
  bool on_string_part(Text text, size_t, Error&) {
    part_.append(text.data(), text.size());
    has_part_ = true;
    return true;
  }
  bool on_string(Text text, size_t, Error&) {
    const char* const begin = record_.data();
    const bool inside = !has_part_ && text.data() >= begin && text.data() < begin + record_.size();
    if (inside) {
      Take({.kind = Kind::kText, .text = {text.data(), text.size()}});
      return true;
    }
    part_.append(text.data(), text.size());
    Take({.kind = Kind::kText, .text = escaped_.emplace_back(std::move(part_))});
    part_.clear();
    has_part_ = false;
    return true;
  }
  bool on_number_part(Text text, Error&) {
    part_.append(text.data(), text.size());
    return true;
  }
  bool on_int64(int64_t, Text text, Error&) { return Number(text); }
  bool on_uint64(uint64_t, Text text, Error&) { return Number(text); }
  bool on_double(double, Text text, Error&) { return Number(text); }
  bool on_bool(bool value, Error&) {
    Take({.kind = Kind::kText, .text = value ? "true" : "false", .boolean = true});
    return true;
  }
  bool on_null(Error&) {
    Take({});
    return true;
  }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

 private:
  bool Number(Text text) {
    if (part_.empty()) {
      Take({.kind = Kind::kParsed, .text = {text.data(), text.size()}});
      return true;
    }
    part_.append(text.data(), text.size());
    Take({.kind = Kind::kParsed, .text = escaped_.emplace_back(std::move(part_))});
    part_.clear();
    return true;
  }

  void Take(const TableCell& cell) {
    if (list_depth_ == 1) {
      values_.push_back(cell);
    } else if (list_depth_ == 0 && objects_.empty()) {
      is_object_ = false;
    } else if (list_depth_ == 0) {
      visitor_->Value(path_, cell);
    }
  }

  std::string_view record_;
  FieldVisitor* visitor_ = nullptr;
  std::string path_;             // of the current field
  std::vector<size_t> objects_;  // the length of the path of each open object
  std::vector<TableCell> values_;
  std::deque<std::string> escaped_;
  std::string part_;
  bool has_part_ = false;
  size_t list_depth_ = 0;  // open lists, and objects within them
  bool nested_ = false;
  bool is_object_ = true;
};

class JsonFields final : public FieldReader {
 public:
  std::string Read(std::string_view record, FieldVisitor* visitor) override {
    parser_.reset();
    parser_.handler().Begin(record, visitor);
    Error error;
    size_t used = parser_.write_some(false, record.data(), record.size(), error);
    // The parser stops behind the value; blanks may follow.
    while (!error && used < record.size() && (record[used] == ' ' || record[used] == '\t')) ++used;
    if (error) return Fault(record, error);
    if (used < record.size()) return fmt::format("a JSON object; it ends at byte {}", used);
    return parser_.handler().is_object() ? "" : "a JSON object";
  }

 private:
  static std::string Fault(std::string_view record, const Error& error) {
    const size_t half = FindLoneSurrogate(record);
    if (half == std::string_view::npos) return fmt::format("a JSON object ({})", error.message());
    return fmt::format(
        "a JSON object; at byte {} {} is half of a character, without the other half", half,
        record.substr(half, 6));
  }
  static boost::json::parse_options Options() {
    boost::json::parse_options options;
    options.max_depth = kMaxDepth;
    return options;
  }
  boost::json::basic_parser<FieldHandler> parser_{Options()};
};

}  // namespace

std::unique_ptr<FieldReader> MakeJsonFields() { return std::make_unique<JsonFields>(); }

}  // namespace shoal::data
