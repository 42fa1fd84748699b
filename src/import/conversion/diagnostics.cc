#include "import/conversion/diagnostics.h"

namespace shoal::importer {

std::string Diagnostics::NameOf(const std::string& field) const {
  for (const auto& [prefix, name] : renamed_) {
    if (field.starts_with(prefix)) return name + field.substr(prefix.size());
  }
  return field;
}

void Diagnostics::AddError(const job::SourceLocation& place, const std::string& field,
                           const std::string& sentence) {
  errors_->Add(place, NameOf(field), sentence);
}

void Diagnostics::AddLoss(const job::SourceLocation& place, const std::string& field,
                          const std::string& sentence, const std::string& at) {
  losses_.push_back({place, NameOf(field), sentence, at, false, ""});
}

void Diagnostics::AddMinorLoss(const job::SourceLocation& place, const std::string& field,
                               const std::string& sentence, const std::string& at) {
  losses_.push_back({place, NameOf(field), sentence, at, true, ""});
}

void Diagnostics::Add(ImportLoss loss) {
  loss.field = NameOf(loss.field);
  losses_.push_back(std::move(loss));
}

}  // namespace shoal::importer
