package controllergen

import (
	"strings"
	"testing"

	"github.com/gobuffalo/flect"
	"github.com/yare-go/yare/kube"
)

// The default plural of a kind is what controller-gen makes of the kind.
func TestPluralsAreThoseOfControllerGen(t *testing.T) {
	t.Parallel()
	compared := 0
	for kind := range kindsToCompare() {
		r, err := kube.Definition{Group: "example.com", Version: "v1", Kind: kind}.Resource()
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		// sigs.k8s.io/controller-tools/pkg/crd/spec.go
		if want := strings.ToLower(flect.Pluralize(kind)); r.Plural != want {
			t.Errorf("the plural of %s is %s, and %s of controller-gen", kind, r.Plural, want)
		}
		compared++
	}
	t.Logf("%d plurals compared", compared)
	if compared < 3000 {
		t.Errorf("only %d plurals were compared", compared)
	}
}

// kindsToCompare returns names of kinds: those that are in use, and words, each alone, behind another word,
// behind an acronym, and as the end of a longer word.
func kindsToCompare() map[string]bool {
	kinds := map[string]bool{}
	for _, kind := range strings.Fields(usedKinds) {
		kinds[kind] = true
	}
	for _, word := range strings.Fields(words) {
		title := strings.ToUpper(word[:1]) + word[1:]
		for _, kind := range []string{
			title, "Web" + title, "HTTP" + title, "HTTPS" + title, "Up" + word, "WWW" + word, title + "s", title + "Class", title + "2",
			title + "-v2", "My-" + title, strings.ToUpper(word), "Web" + strings.ToUpper(word),
		} {
			kinds[kind] = true
		}
	}
	return kinds
}

// usedKinds are kinds of public operators and of Kubernetes.
const usedKinds = `
Alertmanager AlertmanagerConfig AddonProvider Analysis AnalysisRun AnalysisTemplate Application ApplicationSet AppProject
AuthorizationPolicy AwsNodeTemplate AWSCluster AWSMachine AzureCluster Backup BackupSchedule BackupStorageLocation BGPConfiguration
BGPPeer BGPAdvertisement Broker Bucket Build BuildRun Canary Cassandra CassandraDatacenter CephBlockPool CephCluster CephFilesystem
CephNFS CephObjectStore CephRBDMirror Certificate CertificateRequest Challenge ChaosEngine ChaosExperiment ChaosResult
CiliumEndpoint CiliumIdentity CiliumNetworkPolicy CiliumNode Cluster ClusterClass ClusterImageCatalog ClusterIssuer
ClusterOutput ClusterPodMonitor ClusterPolicy ClusterPolicyReport ClusterResourceQuota ClusterSecretStore ClusterTask
ClusterWorkflowTemplate CompositeResourceDefinition Composition Condition Configuration ConfigurationRevision Connector
ConsoleYAMLSample ControllerConfig CouchbaseCluster CronWorkflow Crossplane CustomRun DNS DNSRecord DNSEndpoint DNSPolicy Database
DataVolume DatadogAgent DatadogMetrics Dashboard Datastore Deployment DestinationRule Dgraph DiskImage Domain DomainMapping
Drbd EC2NodeClass Echo Elasticsearch ElasticIP EndpointSlice Endpoints EnvoyFilter EnvoyProxy Etcd EtcdBackup EtcdCluster
EventBus EventSource ExternalSecret FelixConfiguration Flannel Flink FlinkDeployment Flow Foo Function Gateway GatewayClass Git
GitProxy GitRepository GlobalNetworkPolicy GlobalNetworkSet Grafana GrafanaDashboard GrafanaDataSource GRPCRoute HTTPProxy HTTPRoute
HTTPScaledObject HelmChart HelmChartConfig HelmRelease HelmRepository HostEndpoint Hypervisor IAMPolicy IPAddress IPAddressPool
IPAMBlock IPPool IPReservation IPSet IPAMConfig Image ImageCatalog ImagePolicy ImageRepository ImageUpdateAutomation Index Ingress
IngressClass IngressRoute IngressRouteTCP Install Installation Instances Invocation Issuer Istio JWKS Jaeger Jenkins Job JobSet
K6 K8s KafkaConnect KafkaBridge KafkaMirrorMaker2 KafkaTopic KafkaUser Kafka Kibana Keycloak KeycloakRealmImport Kiali Knative
KonnectorBus KubeVirt Kubernetes KubernetesCluster Kustomization L2Advertisement LDAP Lease LimitRange LocalQueue Logging Loki
LokiStack Mesh Metrics Machine MachineConfig MachineDeployment MachineHealthCheck MachinePool MachineSet MariaDB Memcached
MeshGateway MinIO MongoDB MongoDBCommunity Mysql MySQL MySQLCluster NATS NatsCluster NetworkAttachmentDefinition NetworkPolicy NetworkSet
NFS Nexus Nginx NginxIngress Node NodeClaim NodeMetrics NodePool Nodes OAuth2Client OCIRepository ObjectBucketClaim OpenSearch
OpenSearchCluster OpenTelemetryCollector Opensearches OperatorGroup Order PeerAuthentication PerconaXtraDBCluster PgBouncer
PGCluster Pipeline PipelineRun PodChaos PodDisruptionBudget PodMetrics PodMonitor Policy PolicyReport Pooler Postgres PostgresCluster
PostgresUser Postgresql PriorityClass Probe ProbeStatus Project Prometheus PrometheusAgent PrometheusRule ProviderConfigUsage Proxy
ProxySQL PubSub Publication PulsarCluster Quota RabbitMQ RabbitmqCluster RayCluster RayService Realm Receiver Redis RedisCluster
RedisFailover RedisSentinel ReferenceGrant Registry Repo Repository RequestAuthentication ResourceFlavor ResourceQuota Restic Restore
Revision Rook Rollout Route S3 S3Bucket SQL SQLInstance ScaledJob ScaledObject Schedule ScheduledBackup ScheduledSparkApplication Schema
SealedSecret Secret SecretProviderClass SecretStore Sentinel Series Serverless Service ServiceBinding ServiceEntry ServiceExport ServiceMonitor
Session Sidecar SnapMirror Solr SolrCloud SparkApplication Species SriovNetwork StatefulSet Status StorageBus StorageClass
StorageOS Strimzi Subscription TCPRoute TLSRoute TLS TaskRun Telemetry Template Tempo TempoStack Tenant ThanosRuler Thanos Tigerastatus Topic
TraefikService Trigger TriggerBinding TrinoCluster TunedProfile UDPRoute Unit User UserAlias UsersQuota VMAlert VMAlertmanager VMAgent VMAuth
VMCluster VPC VPN Valkey Vault VaultAuth VaultDynamicSecret Velero VerticalPodAutoscaler Virtualservice VirtualMachine VirtualService Virus
Volume VolumeSnapshot VolumeSnapshotClass VolumeSnapshotContent Vpc WASM WasmPlugin WebApp WebAPI Webhook WiFi WildFlyServer Wireguard
Workflow WorkflowTemplate Workload WorkloadEntry Workspace XPostgreSQLInstance Zookeeper ZookeeperCluster
`

// words are the last words of kinds.
const words = `
abuse access ache ack acl address addon adieu agenda agent aircraft alias alumna alumnus analysis apex api app appendix aquarium
archive arp atm auditorium axis bacillus backup base basis batch beef bench bison blitz blues box branch brush buffalo bureau bus buzz byte
cache cactus calculus campus canary case casino catch cause census chaos chassis chateau chef chi chief child chive cidr class clause cli
cloth cluster coccus codex company compass condition cookie corpus cpu crisis criterion cross cruse cry curriculum data database datum
day deer delta dhcp diagnosis dice die differentia dish disk dns dwarf echo edge ellipsis employee endpoints epoch equipment eureka excuse
fabliau fish flash focus foot formula forum fuse gallery ganglion gas gateway genesis genus glitch goose graffiti graph hash hero hoof hive
house http human hypothesis id ids image index information ingress ip item jeans journey key kilo knife kubernetes larva latch latex leaf
lens lexicon library life loaf locus logo louse man mass matrix mattress maximum media medium memo memory metadata metric metrics minimum
minutia mitochondrion money moose mouse move movie muse museum music nebula network news nexus noumenon nucleus oasis octopus ohm optimum
ovum ox pass path patio pause person phenomenon photo piano pizza plus policy police policeman postcava postgres potato praecava pretorium process
prometheus proof proxy quartz query quiz quiz quota radio radius radix range redis reef registry repo rice roof safe salmon schema scarf serum
series series service shelf sheep shoe shrimp silo species spectrum sphinx spy stadium staff status stimulus strata stratum stress studio
success suffix supply swine syllabus symposium synopsis syntax table talus taxon tax testis thesis thief ticket toe tomato tooth topaz torus
trout truss tuna turf use user uva vault vedalia vertebra vertex video virus vita vlan volume vortex vpc wasm watch wife wolf woman you zoo
`
