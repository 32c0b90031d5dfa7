package controllermanager

import (
	"context"
	"fmt"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	controllerhealthz "k8s.io/controller-manager/pkg/healthz"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/yare-go/yare/controlplane/internal/lifeline"
)

// run runs all controllers until the context ends. Every controller uses the credentials of the
// kubeconfig, because the permissions of controllers are not tested here.
func run(ctx context.Context, c *config.CompletedConfig, line lifeline.Lifeline) error {
	c.EventBroadcaster.StartStructuredLogging(0)
	c.EventBroadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: c.Client.CoreV1().Events("")})
	defer c.EventBroadcaster.Shutdown()

	cc, err := newContext(ctx, c)
	if err != nil {
		return fmt.Errorf("prepare the controllers: %w", err)
	}
	controllers, err := build(ctx, cc)
	if err != nil {
		return err
	}

	cc.InformerFactory.Start(ctx.Done())
	defer cc.InformerFactory.Shutdown()
	cc.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(cc.InformersStarted)

	line.Ready()
	const noJitter = 0 // jitter spreads the load of many clusters; here it is only a delay
	if !app.RunControllers(ctx, cc, controllers, noJitter, c.ControllerShutdownTimeout) {
		return fmt.Errorf("not all controllers ended within %v", c.ControllerShutdownTimeout)
	}
	return nil
}

// build makes every stock controller that the flags enable, and the controllers of this package in place of some.
func build(ctx context.Context, cc app.ControllerContext) ([]app.Controller, error) {
	descriptors := app.NewControllerDescriptors()
	ours := map[string]func(context.Context, app.ControllerContext) (app.Controller, error){
		names.GarbageCollectorController:    newGarbageCollector,
		names.NamespaceController:           newNamespaceController,
		names.ServiceAccountTokenController: newTokensController,
	}
	enabled := map[string]bool{}
	for name := range ours {
		enabled[name] = cc.IsControllerEnabled(descriptors[name])
		delete(descriptors, name)
	}

	controllers, err := app.BuildControllers(ctx, cc, descriptors, nil, controllerhealthz.NewMutableHealthzHandler())
	if err != nil {
		return nil, fmt.Errorf("build the controllers: %w", err)
	}
	for name, construct := range ours {
		if !enabled[name] {
			continue
		}
		controller, err := construct(ctx, cc)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
		controllers = append(controllers, controller)
	}
	return controllers, nil
}
