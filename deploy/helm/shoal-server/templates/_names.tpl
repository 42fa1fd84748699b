{{- define "server.selector" -}}
app.kubernetes.io/name: shoal-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "server.labels" -}}
{{ include "server.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "server.image" -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end }}
{{- end }}

{{- /* Of objects that belong to the whole cluster. */ -}}
{{- define "server.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}-shoal-server
{{- end }}
