// An algorithm on sparse examples as an entry of the registry (learn/algorithm.h), made of what is
// its own: parameters and a learner. Used by logistic.cc, fm.cc and ffm.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/algorithm.h"
#include "learn/params/param_fields.h"
#include "learn/sparse/base_model.h"
#include "learn/sparse/job.h"
#include "learn/task/parameter_server.h"
#include "learn/task/task.h"

namespace shoal::learn::sparse {

// `Params` derives from CommonParams and has a kName, which is the algorithm's, and Fields(), the
// one table that file, flags, documentation and model.json come from. `Learner` has
// Make(const Params&).
template <typename Params, typename Learner>
struct AlgorithmOf {
  // Values in range. Errors as ParseParams.
  static Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn,
                              std::string_view file) {
    Params params;
    TRY(ParseFields(Params::Fields(), learn, file, &params));
    TRY(OneThreadIfDeterministic(params, learn, file));
    return params;
  }

  // With what a model that is continued was trained with.
  static Result<Params> ParseWithBase(const LearnValues& learn, std::string_view file) {
    if (FromIn(learn).empty()) return Parse(learn, file);
    TRY(Parse(learn, file).status());
    TRY_ASSIGN(const json::object metadata, ReadBaseMetadata(FromIn(learn)));
    TRY_ASSIGN(const LearnValues all,
               ContinueLearn(ParamsOf(Params::Fields()), learn, file, Params::kName, metadata));
    return Parse(all, file);
  }

  static Status Validate(const job::Job& job, DataLocation data) {
    TRY_ASSIGN(const Params params, data == DataLocation::kLocal
                                        ? ParseWithBase(job.learn, job.file)
                                        : Parse(job.learn, job.file));
    return ValidateJob(job, params, Params::kName, data);
  }

  static Status Train(Task& task) {
    TRY_ASSIGN(Params params, ParseWithBase(task.learn, ""));
    TRY(ResolveLoss(task.data, &params));
    TRY_ASSIGN(const Learner learner, Learner::Make(params));
    return TrainAsWorker(task,
                         {Params::kName, params, FieldsToText(Params::Fields(), params), &learner});
  }
};

// `doc` and `formats` as in Algorithm, literals. One call a type: the table lives for ever.
template <typename Params, typename Learner>
Algorithm MakeAlgorithm(std::string_view doc, std::string_view formats) {
  static const std::vector<Param> table = ParamsOf(Params::Fields());
  using Made = AlgorithmOf<Params, Learner>;
  return {Params::kName,      doc,         table,   Made::Validate,
          RunParameterServer, Made::Train, formats, true};
}

}  // namespace shoal::learn::sparse
