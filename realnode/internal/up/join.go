//go:build linux

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/yare-go/yare/realnode/internal/layout"
	"github.com/yare-go/yare/realnode/internal/node"
	"github.com/yare-go/yare/realnode/internal/relay"
)

const (
	// readyTimeout bounds the start of the kubelet and of kube-proxy.
	readyTimeout = 2 * time.Minute
	// readyInterval is the wait between two checks of the node.
	readyInterval = 100 * time.Millisecond
)

// cluster is the cluster that a node joins.
type cluster struct {
	client kubernetes.Interface
	relay  *relay.Relay
}

// joinCluster makes the API server of a kubeconfig file reachable for the node: by the kubeconfig
// file of the node's components, and, for Pods, by the Service kubernetes.
func joinCluster(ctx context.Context, l layout.Layout, kubeconfig string) (cluster, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return cluster{}, fmt.Errorf("read the kubeconfig file: %w", err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || config.Clusters[current.Cluster] == nil {
		return cluster{}, fmt.Errorf("the kubeconfig file %s has no current context", kubeconfig)
	}
	target := config.Clusters[current.Cluster]
	server, err := url.Parse(target.Server)
	if err != nil {
		return cluster{}, fmt.Errorf("read the kubeconfig file %s: %w", kubeconfig, err)
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return cluster{}, fmt.Errorf("read the kubeconfig file %s: %w", kubeconfig, err)
	}
	restConfig.UserAgent = "yare-node"
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return cluster{}, fmt.Errorf("make a client: %w", err)
	}

	address := netip.AddrPortFrom(l.HostAddress(), layout.APIPort)
	// The certificate of the API server has no name for the link, so another one of its names is
	// checked. Pods use the cluster IP of the Service, which is in the certificate.
	target.Server = "https://" + address.String()
	target.TLSServerName = layout.APIServerName
	if err := clientcmd.WriteToFile(*config, l.Kubeconfig()); err != nil {
		return cluster{}, fmt.Errorf("write the kubeconfig file of the node: %w", err)
	}
	if err := publishAPIServer(ctx, client, address); err != nil {
		return cluster{}, err
	}
	forwarder, err := relay.Start(address, l.Link(), server.Host)
	if err != nil {
		return cluster{}, err
	}
	return cluster{client: client, relay: forwarder}, nil
}

// publishAPIServer makes an address the endpoint of the Service kubernetes. The API server of yare
// writes none itself, because its own address is a loopback address.
func publishAPIServer(ctx context.Context, client kubernetes.Interface, address netip.AddrPort) error {
	const service, portName = "kubernetes", "https"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service,
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service,
				discoveryv1.LabelManagedBy:   "yare",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{address.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{
			Name: new(portName), Protocol: new(corev1.ProtocolTCP), Port: new(int32(address.Port())),
		}},
	}
	_, err := client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).Create(ctx, slice, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("publish the address of the API server for Pods: %w", err)
	}
	return nil
}

// waitReady waits until the node is ready and kube-proxy has written its rules.
func (c cluster) waitReady(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := c.checkReady(ctx, l)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"the node is not ready after %v: %w; the end of the kubelet's log:\n%s\nthe end of kube-proxy's log:\n%s",
				readyTimeout, err, node.LogTail(l.LogFile("kubelet")), node.LogTail(l.LogFile("kube-proxy")))
		case <-time.After(readyInterval):
		}
	}
}

// checkReady returns an error unless the node is ready and kube-proxy has written its rules.
func (c cluster) checkReady(ctx context.Context, l layout.Layout) error {
	object, err := c.client.CoreV1().Nodes().Get(ctx, layout.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := checkAcceptsPods(object); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s:%d/healthz", l.NodeAddress(), layout.ProxyHealthPort), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("kube-proxy is not healthy: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("kube-proxy is not healthy: %s", response.Status)
	}
	return nil
}

// checkAcceptsPods returns an error unless a node is ready and accepts Pods.
func checkAcceptsPods(object *corev1.Node) error {
	if len(object.Spec.Taints) > 0 {
		return fmt.Errorf("the node has the taint %s", object.Spec.Taints[0].Key)
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("the node has not reported its condition")
}
