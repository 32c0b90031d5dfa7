package publishing

import (
	"context"
	"log/slog"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/configuration"
)

type Config struct {
	Name            string
	Labels          map[string]string
	Namespace       string
	Webhooks        []*admission.Webhook
	Target          configuration.Target
	BundleFor       func(published []byte) []byte
	Changed         func() <-chan struct{}
	Leader, Replica *kube.Client
	Leads           func() bool
	Elected         <-chan struct{}
	Log             *slog.Logger
}
type Publisher struct{}
type Status struct {
	Kind                string
	Exists, IsPublished bool
}

func New(Config) (*Publisher, error)                  { return nil, nil }
func (p *Publisher) Run(ctx context.Context) error    { return nil }
func (p *Publisher) Ready() error                     { return nil }
func (p *Publisher) Status() []Status                 { return nil }
func (p *Publisher) Remove(ctx context.Context) error { return nil }
