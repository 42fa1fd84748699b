// SparkApplications: what they become.
#include <gtest/gtest.h>

#include "import/test_imports.h"

namespace shoal::importer {
namespace {

TEST(SparkApplication, VolumesForLocalDirectoriesAreUsedBySpark) {
  const auto load = [](const std::string& volume) {
    return Import(
        "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {name: s}\n"
        "spec:\n  type: Python\n  mode: cluster\n  image: i\n  mainApplicationFile: local:///a.py\n"
        "  volumes: [{name: spark-local-dir-1, " +
        volume +
        "}, {name: other, hostPath: {path: /o}}]\n"
        "  driver: {cores: 1}\n"
        "  executor:\n    instances: 2\n    volumeMounts: [{name: other, mountPath: /other}, "
        "{name: spark-local-dir-1, mountPath: /data1}]\n");
  };
  const job::Job disk = load("hostPath: {path: /mnt/disk}");
  EXPECT_EQ(disk.FindRole("worker")->env.at("SPARK_LOCAL_DIRS"), "/data1");
  EXPECT_FALSE(disk.FindRole("driver")->env.contains("SPARK_LOCAL_DIRS"));
  const job::Job empty = load("emptyDir: {}");
  EXPECT_FALSE(empty.FindRole("worker")->env.contains("SPARK_LOCAL_DIRS"));
}

}  // namespace
}  // namespace shoal::importer
