package manifests

// The objects as YAML. A word between two @ stands for a value, which takes its place as JSON.
const (
	namespaceText = `
apiVersion: v1
kind: Namespace
metadata: {name: @namespace@}
`
	accountText = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: @name@, namespace: @namespace@}
`
	// The role completes its binding: see bindTo.
	bindingText = `
apiVersion: rbac.authorization.k8s.io/v1
roleRef: {apiGroup: rbac.authorization.k8s.io}
subjects:
- {kind: ServiceAccount, name: @name@, namespace: @namespace@}
`
	serviceText = `
apiVersion: v1
kind: Service
metadata: {name: @name@, namespace: @namespace@}
spec:
  selector: @selector@
  ports:
  - {name: metrics, port: @port@, protocol: TCP, targetPort: metrics}
`
	budgetText = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: @name@, namespace: @namespace@}
spec:
  maxUnavailable: 1
  selector: {matchLabels: @selector@}
  unhealthyPodEvictionPolicy: AlwaysAllow
`
	// Outgoing connections stay open: the address of the API server is not known here, and the
	// program may call others.
	networkPolicyText = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: @name@, namespace: @namespace@}
spec:
  podSelector: {matchLabels: @selector@}
  policyTypes: [Ingress]
  ingress: @ingress@
`
	// Who has the role may read the metrics that the program serves over TLS.
	readerRoleText = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: @reader role@}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
`
	readerAccountText = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: @reader@, namespace: @namespace@}
`
	readerBindingText = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: @reader role@}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: @reader role@}
subjects:
- {kind: ServiceAccount, name: @reader@, namespace: @namespace@}
`
	// A ServiceMonitor names a Secret. Kubernetes puts the token of the account into this one.
	readerTokenText = `
apiVersion: v1
kind: Secret
metadata:
  name: @reader@
  namespace: @namespace@
  annotations: {kubernetes.io/service-account.name: @reader@}
type: kubernetes.io/service-account-token
`
	serviceMonitorText = `
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: @name@, namespace: @namespace@}
spec:
  selector: {matchLabels: @selector@}
  endpoints:
  - @endpoint@
`
	deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: @name@, namespace: @namespace@}
spec:
  replicas: @replicas@
  selector: {matchLabels: @selector@}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels: @selector@
      annotations: {kubectl.kubernetes.io/default-container: operator}
    spec:
      serviceAccountName: @name@
      terminationGracePeriodSeconds: @grace@
      securityContext:
        runAsNonRoot: true
        seccompProfile: {type: RuntimeDefault}
      nodeSelector: {kubernetes.io/os: linux}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: kubernetes.io/arch, operator: In, values: @architectures@}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: @selector@}
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: @selector@}
      containers:
      - name: operator
        image: @image@
        args: @args@
        env:
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        ports: @ports@
        volumeMounts: @mounts@
        livenessProbe:
          httpGet: {path: /healthz, port: probes, scheme: HTTP}
          periodSeconds: 20
          timeoutSeconds: 5
        readinessProbe:
          httpGet: {path: /readyz, port: probes, scheme: HTTP}
          periodSeconds: 5
          timeoutSeconds: 5
        resources: @resources@
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
`
)
