{{- /* Who: the subjects of a binding. */ -}}
{{- define "shoal.subjects" -}}
{{- if .Values.serviceAccount.create }}
- kind: ServiceAccount
  name: {{ .Values.serviceAccount.name }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- range .Values.serviceAccounts }}
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .namespace | default $.Release.Namespace }}
{{- end }}
{{- range .Values.users }}
- {kind: User, name: {{ . | quote }}, apiGroup: rbac.authorization.k8s.io}
{{- end }}
{{- range .Values.groups }}
- {kind: Group, name: {{ . | quote }}, apiGroup: rbac.authorization.k8s.io}
{{- end }}
{{- end }}
