#include "learn/fm/params.h"

#include "learn/fields.h"
#include "learn/fm/factor_fields.h"

namespace shoal::learn::fm {
namespace {

using Field = FieldOf<Params>;

std::span<const Field> Fields() {
  static const std::vector<Field> fields =
      sparse::WithCommonFields<Params>(FactorFields<Params>({}), "2");
  return fields;
}

}  // namespace

std::span<const Param> ParamTable() {
  static const std::vector<Param> table = TableOf(Fields());
  return table;
}

Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file) {
  Params params;
  TRY(ParseFields(Fields(), learn, file, &params));
  TRY(OneThreadIfDeterministic(params, learn, file));
  return params;
}

std::map<std::string, std::string> ToText(const Params& params) {
  return FieldsToText(Fields(), params);
}

}  // namespace shoal::learn::fm
