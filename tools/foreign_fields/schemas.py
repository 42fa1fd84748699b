"""Published definitions of foreign job descriptions as definitions of fields: {definition: {field: (type, required)}}.

A type is text, int, number, flag, quantity (Kubernetes'), port (a name or a number), time, any, a definition's name,
[type] for a list, {type} for a map with names of the user's."""
import os

import yaml

SCALARS = {"string": "text", "integer": "int", "number": "number", "boolean": "flag"}
# Not taken apart: the API server's own words about an object, and rules for another program (autoscaling/v2).
OPAQUE = {"status": "any", "managedFields": "any", "metrics": "any", "volumeClaimPolicies": "any"}


def capital(name):
    return name[:1].upper() + name[1:]


def openapi(document, roots):
    """The definitions that `roots` (["PodTemplateSpec", "Job"]) reach in an OpenAPI 3 document of Kubernetes."""
    schemas = {name.rsplit(".", 1)[1]: schema for name, schema in document["components"]["schemas"].items()}
    special = {"Quantity": "quantity", "IntOrString": "port", "Time": "time", "MicroTime": "time", "FieldsV1": "any",
               "RawExtension": "any"}
    found, waiting = {}, list(roots)

    def type_of(schema):
        reference = schema.get("$ref") or next((one["$ref"] for one in schema.get("allOf", []) if "$ref" in one), None)
        if reference:
            name = reference.rsplit(".", 1)[1]
            if name in special:
                return special[name]
            waiting.append(name)
            return name
        if schema.get("type") == "array":
            return f"[{type_of(schema['items'])}]"
        if "additionalProperties" in schema:
            return "{" + type_of(schema["additionalProperties"]) + "}"
        return SCALARS.get(schema.get("type"), "any")

    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        required = schemas[name].get("required", [])
        found[name] = {field: (OPAQUE.get(field) or type_of(one), field in required)
                       for field, one in schemas[name].get("properties", {}).items()}
    # A pod's name and namespace are its owner's to give.
    if "PodTemplateSpec" in found:
        found["PodTemplateMeta"] = dict(found["ObjectMeta"])
        found["PodTemplateSpec"]["metadata"] = ("PodTemplateMeta", False)
    if "JobTemplateSpec" in found:
        found["JobTemplateSpec"]["metadata"] = ("PodTemplateMeta", False)
    return found


# Definitions of custom resources that are the same at all places and in all kinds that have them.
SHARED = {"runPolicy": "RunPolicy", "schedulingPolicy": "SchedulingPolicy", "elasticPolicy": "ElasticPolicy",
          "policies": "VolcanoPolicy", "tasks": "VolcanoTask", "volumes": "VolcanoVolume", "dependsOn": "VolcanoDependsOn",
          "partitionPolicy": "VolcanoPartitionPolicy", "networkTopology": "VolcanoNetworkTopology",
          "volumeClaim": "PersistentVolumeClaimSpec", "tfReplicaSpecs": "ReplicaSpec", "pytorchReplicaSpecs": "ReplicaSpec",
          "mpiReplicaSpecs": "ReplicaSpec", "xgbReplicaSpecs": "ReplicaSpec", "mxReplicaSpecs": "ReplicaSpec",
          "jaxReplicaSpecs": "ReplicaSpec", "paddleReplicaSpecs": "ReplicaSpec"}


# Definitions that are another one.
SAME = {"VolcanoCronJobSpecJobTemplateSpec": "VolcanoJobSpec"}
# Fields of the names in SHARED that are something else in a kind.
OTHERWISE = {("JobSet", "dependsOn"): "JobSetDependsOn", ("PaddleJob", "elasticPolicy"): "PaddleElasticPolicy",
             ("TrainJob", "env"): "any", ("TrainJob", "resourcesPerNode"): "ResourceRequirements",
             ("TrainJob", "runtimePatches"): "TrainJobRuntimePatch", ("TrainJob", "trainingRuntimeSpec"): "TrainJobRuntimeSpecPatch",
             ("TrainJob", "model"): "TrainJobSpecInitializerDataset", ("TrainJob", "template"): "any",
             ("TrainingRuntime", "mlPolicy"): "TrainingRuntimeMlPolicy", ("TrainingRuntime", "torch"): "TrainingRuntimeTorch",
             ("TrainingRuntime", "mpi"): "TrainingRuntimeMpi", ("TrainingRuntime", "podGroupPolicy"): "TrainingRuntimePodGroupPolicy",
             ("TrainingRuntime", "coscheduling"): "TrainingRuntimeCoscheduling", ("TrainingRuntime", "volcano"): "TrainingRuntimeVolcano",
             ("TrainingRuntime", "template"): "TrainingRuntimeTemplate", ("TrainingRuntime", "metadata"): "any",
             ("SparkApplication", "affinity"): "Affinity", ("SparkApplication", "tolerations"): "Toleration",
             ("SparkApplication", "env"): "EnvVar", ("SparkApplication", "envFrom"): "EnvFromSource",
             ("SparkApplication", "volumes"): "Volume", ("SparkApplication", "volumeMounts"): "VolumeMount",
             ("SparkApplication", "podSecurityContext"): "PodSecurityContext",
             ("SparkApplication", "securityContext"): "SecurityContext", ("SparkApplication", "hostAliases"): "HostAlias",
             ("SparkApplication", "sidecars"): "Container", ("SparkApplication", "initContainers"): "Container",
             **{("SparkApplication", field): "any" for field in (
                 "lifecycle", "dnsConfig", "template", "monitoring", "sparkUIOptions",
                 "driverIngressOptions", "batchSchedulerOptions")},
             ("RayJobSpec", "metadata"): "{text}",
             **{("RayJob", field): "any" for field in (
                 "submitterPodTemplate", "networkPolicy", "gcsFaultToleranceOptions", "autoscalerOptions", "historyServerOptions",
                 "deletionStrategy", "headService", "authOptions", "scaleStrategy", "tlsOptions", "upgradeStrategy", "submitterConfig")}}
# Definitions that other tables have.
ELSEWHERE = {"PersistentVolumeClaimSpec", "EnvVar", "ResourceRequirements", "Affinity", "Toleration", "EnvFromSource", "Volume",
             "VolumeMount", "PodSecurityContext", "SecurityContext", "HostAlias", "Container", "VolcanoNetworkTopology", "TrainingRuntimeTemplate",
             "any"}


def custom_resource(document, prefix=""):
    """The definitions of a CustomResourceDefinition: its newest version; pod templates are PodTemplateSpec."""
    spec = document["spec"]
    root = prefix + spec["names"]["kind"]
    versions = spec.get("versions") or [{"schema": spec["validation"]}]
    found = {}

    def type_of(schema, name):
        name = SAME.get(name, name)
        if name == "any" or (name in ELSEWHERE and schema.get("type") != "array"):
            return name
        if schema.get("x-kubernetes-int-or-string"):
            return "quantity" if "pattern" in schema else "port"
        if schema.get("type") == "array":
            return f"[{type_of(schema['items'], name)}]"
        if isinstance(schema.get("additionalProperties"), dict):
            return "{" + type_of(schema["additionalProperties"], name) + "}"
        if "properties" in schema:
            define(schema, name)
            return name
        return SCALARS.get(schema.get("type"), "any")

    def define(schema, name):
        fields = found.setdefault(name, {})
        for field, one in schema["properties"].items():
            pod = field == "template" and (root, field) not in OTHERWISE and "spec" in one.get("properties", {})
            job = pod and "template" in one["properties"]["spec"].get("properties", {})
            known = "JobTemplateSpec" if job else "PodTemplateSpec" if pod else OPAQUE.get(field) or (
                OTHERWISE.get((name, "metadata")) or ("ObjectMeta" if name == root else "PodTemplateMeta")
                if field == "metadata" else None)
            below = OTHERWISE.get((root, field)) or SHARED.get(field) or (root + "Spec" if name == root else name + capital(field))
            fields[field] = (known or type_of(one, below), field in schema.get("required", []))

    define(versions[-1]["schema"]["openAPIV3Schema"], root)
    return found


def json_schema(document, root):
    """The definitions of a JSON Schema of drafts 3 to 7; `definitions` are those that `$ref` names."""
    found = {}

    def type_of(schema, name):
        if "$ref" in schema:
            below = schema["$ref"].rsplit("/", 1)[-1]
            return type_of(document["definitions"][below], root + capital(below))
        if "oneOf" in schema:
            return "|".join(type_of(one, name) for one in schema["oneOf"])
        if schema.get("type") == "array":
            return f"[{type_of(schema['items'], name)}]"
        names = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
        if isinstance(names, dict):
            return "{" + type_of(names, name) + "}"
        if "properties" in schema:
            needed = schema.get("required", [])
            found[name] = {}
            for field, one in schema["properties"].items():
                found[name][field] = (type_of(one, name + capital(field)), field in needed)
            return name
        return SCALARS.get(schema.get("type"), "any")

    type_of(document, root)
    return found


class Raml:
    """Types of a folder of RAML libraries."""

    def __init__(self, folder, prefix):
        self.folder, self.prefix, self.libraries, self.found = folder, prefix, {}, {}

    def library(self, name):
        if name not in self.libraries:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.libraries[name] = yaml.load(file, Loader=yaml.BaseLoader)
        return self.libraries[name]

    def declared(self, library, name):
        """(library, declaration) of a type's name, None if it is RAML's own."""
        if "." in name:
            used, name = name.split(".", 1)
            library = self.library(library).get("uses", {}).get(used)
        types = self.library(library).get("types", {}) if library else {}
        return (library, types[name]) if name in types else (library, None)

    def type_of(self, library, declaration, name):
        if isinstance(declaration, dict) and "properties" in declaration:
            return self.define(library, declaration, name)
        text = declaration if isinstance(declaration, str) else declaration.get("type", "string")
        if not isinstance(text, str):
            return self.type_of(library, text, name)
        text = text.strip().strip("()")
        if text == "array" and isinstance(declaration, dict):
            return f"[{self.type_of(library, declaration.get('items', 'string'), name)}]"
        if text.endswith("[]"):
            return f"[{self.type_of(library, text[:-2], name)}]"
        if "|" in text:
            return self.union(library, [part.strip() for part in text.split("|")], name)
        if text in SCALARS:
            return SCALARS[text]
        if text in ("object", "any", "datetime"):
            return {"object": "any", "any": "any", "datetime": "time"}[text]
        where, known = self.declared(library, text)
        if known is None:
            return "text"
        return self.type_of(where, known, text.rsplit(".", 1)[-1])

    def union(self, library, parts, name):
        types = [self.type_of(library, part, part.rsplit(".", 1)[-1]) for part in parts if part != "nil"]
        objects = [one for one in types if one in self.found]
        if len(objects) < 2:
            return "|".join(dict.fromkeys(types)) if objects else types[0]
        name = self.prefix + name
        merged = {}
        for one in objects:
            for field, (kind, needed) in self.found[one].items():
                both = all(field in self.found[other] and self.found[other][field][1] for other in objects)
                merged.setdefault(field, (kind, needed and both))
        self.found[name] = merged
        for one in objects:
            if one != name:
                self.found.pop(one, None)
        return name

    def parents(self, library, declaration):
        for parent in ([declaration.get("type")] if isinstance(declaration.get("type"), str)
                       else declaration.get("type") or []):
            where, known = self.declared(library, parent)
            if isinstance(known, dict) and "properties" in known:
                yield from self.parents(where, known)
                yield where, known

    def define(self, library, declaration, name):
        name = name if name.startswith(self.prefix) else self.prefix + name
        if name in self.found:
            return name
        sections = list(self.parents(library, declaration)) + [(library, declaration)]
        named = [key for _, one in sections for key in one["properties"] or {} if key.startswith("/")]
        if named:
            where, one = sections[-1]
            return "{" + self.type_of(where, one["properties"][named[0]], name + "Value") + "}"
        fields = self.found[name] = {}
        for where, one in sections:
            for key, value in (one["properties"] or {}).items():
                field = key.rstrip("?")
                needed = not key.endswith("?") and "default" not in (value if isinstance(value, dict) else {})
                fields[field] = (self.type_of(where, value or "string", name + capital(field)), needed)
        return name


def raml(folder, library, roots, prefix):
    reader = Raml(folder, prefix)
    for root in roots:
        where, known = reader.declared(library, root)
        reader.type_of(where, known, root)
    return reader.found
