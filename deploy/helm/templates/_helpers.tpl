{{- /* In the chart of an application, with this one as a dependency in mode sidecar, its pods have:

  metadata:
    labels: {redlock-proxy/masters: allowed}
  spec:
    initContainers:
      {{- include "redlock-proxy.sidecar" (index .Subcharts "redlock-proxy") | nindent 6 }}
    volumes:
      {{- include "redlock-proxy.volume" (index .Subcharts "redlock-proxy") | nindent 6 }}

They reach the proxy at 127.0.0.1:6380. */}}

{{- define "redlock-proxy.name" -}}{{ .Release.Name }}-proxy{{- end }}

{{- define "redlock-proxy.container" -}}
- name: redlock-proxy
  image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
  ports:
    {{- if eq .Values.mode "service" }}
    - {name: redis, containerPort: 6380}
    {{- end }}
    - {name: admin, containerPort: 9380}
  # It begins to serve when it can decide locks, however long a quarantine is. Later it
  # stays in service without a quorum, for all proxies lose that together and would take
  # every other command with them.
  startupProbe: {httpGet: {path: /readyz, port: admin}, periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 360}
  livenessProbe: {httpGet: {path: /healthz, port: admin}, periodSeconds: 10, timeoutSeconds: 5}
  {{- if eq .Values.mode "service" }}
  readinessProbe: {httpGet: {path: /healthz, port: admin}, periodSeconds: 5, timeoutSeconds: 2}
  # New clients go elsewhere before the old ones are asked to.
  lifecycle: {preStop: {sleep: {seconds: 5}}}
  {{- else }}
  # An init container that restarts begins before the application and ends after it.
  restartPolicy: Always
  {{- end }}
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  env: [{name: GOMEMLIMIT, value: {{ .Values.memoryLimit }}}]
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    capabilities: {drop: [ALL]}
  volumeMounts: [{name: redlock-proxy, mountPath: /etc/redlock-proxy, readOnly: true}]
{{- end }}

{{- define "redlock-proxy.sidecar" -}}{{ include "redlock-proxy.container" . }}{{- end }}

{{- define "redlock-proxy.volume" -}}
- name: redlock-proxy
  {{- if eq .Values.configIn "Secret" }}
  secret: {secretName: {{ include "redlock-proxy.name" . }}}
  {{- else }}
  configMap: {name: {{ include "redlock-proxy.name" . }}}
  {{- end }}
{{- end }}
