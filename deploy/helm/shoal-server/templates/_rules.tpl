{{- /* The rules of deploy/kubernetes/rbac.yaml and operator.yaml, which say why; a test compares them. */ -}}
{{- define "server.rules" -}}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, create, patch, delete, deletecollection]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete, deletecollection]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/proxy]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/exec, pods/portforward]
  verbs: [get, create]
- apiGroups: [""]
  resources: [secrets, services]
  verbs: [create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- if .Values.operator.enabled }}
- apiGroups: [shoal.dev]
  resources: [shoaljobs]
  verbs: [get, list, watch, patch]
- apiGroups: [shoal.dev]
  resources: [shoaljobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}
{{- end }}

{{- define "server.subjects" -}}
- kind: ServiceAccount
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
{{- end }}
