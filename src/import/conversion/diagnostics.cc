#include "import/conversion/diagnostics.h"

namespace shoal::importer {

void Diagnostics::AddError(const job::SourceLocation& place, const std::string& field,
                           const std::string& sentence) {
  errors_->Add(place, field, sentence);
}

void Diagnostics::AddLoss(const job::SourceLocation& place, const std::string& field,
                          const std::string& sentence, const std::string& at) {
  losses_.push_back({place, field, sentence, at, false, ""});
}

void Diagnostics::AddMinorLoss(const job::SourceLocation& place, const std::string& field,
                               const std::string& sentence, const std::string& at) {
  losses_.push_back({place, field, sentence, at, true, ""});
}

}  // namespace shoal::importer
