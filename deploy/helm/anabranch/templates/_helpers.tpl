{{- define "anabranch.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* 50 characters at most: Services and the pod have longer names made of it, and 63 is the limit. */}}
{{- define "anabranch.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "anabranch.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "anabranch.selector" -}}
app.kubernetes.io/name: {{ include "anabranch.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "anabranch.labels" -}}
{{ include "anabranch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "anabranch.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- define "anabranch.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "anabranch.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* What clients in the cluster are told. Not the pod's own name: the client Service's lives as long as the release. */}}
{{- define "anabranch.advertise" -}}
{{- .Values.kafka.advertise | default (printf "%s.%s.svc.%s:%v" (include "anabranch.fullname" .) .Release.Namespace .Values.clusterDomain .Values.kafka.port) -}}
{{- end -}}

{{/* The names of the HTTP Service that have a dot; names without one are always answered. */}}
{{- define "anabranch.hosts" -}}
{{- $service := printf "%s-http.%s" (include "anabranch.fullname" .) .Release.Namespace -}}
{{- $hosts := list $service (printf "%s.svc" $service) (printf "%s.svc.%s" $service .Values.clusterDomain) -}}
{{- if .Values.http.ingress.enabled -}}
{{- $hosts = append $hosts (required "http.ingress.host: which name does the console have?" .Values.http.ingress.host) -}}
{{- end -}}
{{- concat $hosts .Values.http.hosts | uniq | toJson -}}
{{- end -}}

{{/* The file of settings. JSON's numbers, strings and lists are TOML's as well. */}}
{{- define "anabranch.toml" -}}
{{- $own := list "data" "listen" "advertise" "http" "admin.hosts" "admin.token.file" -}}
data = "/var/lib/anabranch"
{{- if .Values.external.enabled }}
{{- $outside := required "external.advertise: under which HOST:PORT do clients outside reach the broker? They connect to what it tells them" .Values.external.advertise }}
listen = ["CLUSTER://0.0.0.0:{{ .Values.kafka.port }}", "EXTERNAL://0.0.0.0:{{ .Values.external.port }}"]
advertise = ["CLUSTER://{{ include "anabranch.advertise" . }}", "EXTERNAL://{{ $outside }}"]
{{- else }}
listen = "0.0.0.0:{{ .Values.kafka.port }}"
advertise = "{{ include "anabranch.advertise" . }}"
{{- end }}
http = "0.0.0.0:{{ .Values.http.port }}"
admin.hosts = {{ include "anabranch.hosts" . }}
{{- if .Values.http.tokenSecret.name }}
admin.token.file = "/etc/anabranch-token/{{ .Values.http.tokenSecret.key }}"
{{- end }}
{{- range $key, $value := .Values.settings }}
{{- if has $key $own }}
{{- fail (printf "settings.%s: the chart sets it from its own values (kafka, external, http)" $key) }}
{{- end }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end -}}
