package calls

import (
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/configpublishing"
)

// registerCertificates registers the metrics of the certificates of webhooks.
func registerCertificates(r *metrics.Registry, status func() certificates.Status) {
	for _, each := range []struct {
		name, help string
		value      func(certificates.Status) float64
	}{
		{"yare_webhook_certificate_seconds", "How long the certificate of this replica for webhooks is valid from now on.",
			func(s certificates.Status) float64 { return s.CertificateLeft.Seconds() }},
		{"yare_webhook_authority_seconds", "How long the newest CA of webhooks is valid from now on.",
			func(s certificates.Status) float64 { return s.AuthorityLeft.Seconds() }},
		{
			"yare_webhook_authorities",
			"CAs in the bundle of webhooks. With 8 of them the next rotation may drop one that is in use.",
			func(s certificates.Status) float64 { return float64(s.Authorities) },
		},
	} {
		r.Gauge(each.name, each.help, func() float64 { return each.value(status()) })
	}
}

// registerConfigurations registers the metrics of the webhook configurations.
func registerConfigurations(r *metrics.Registry, status func() []configpublishing.Status) {
	for _, each := range []struct {
		name, help string
		value      func(configpublishing.Status) float64
	}{
		{"yare_webhook_configuration_exists", "1 if the configuration by which API servers call webhooks exists, else 0.",
			func(s configpublishing.Status) float64 { return oneIf(s.Exists) }},
		{"yare_webhook_bundle_published", "1 if the entries of the configuration have the bundle of this replica, else 0.",
			func(s configpublishing.Status) float64 { return oneIf(s.IsPublished) }},
		{"yare_webhook_foreign_expressions", "Entries of the configuration in which others exclude objects by a selector.",
			func(s configpublishing.Status) float64 { return float64(s.ForeignExpressions) }},
	} {
		r.Collect(metrics.KindGauge, each.name, each.help, []string{"kind"}, func(emit metrics.Emit) {
			for _, s := range status() {
				emit(each.value(s), s.Kind)
			}
		})
	}
}

// oneIf returns 1 if a condition holds, else 0.
func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
