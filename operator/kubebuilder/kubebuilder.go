// Package kubebuilder accepts the flags that the scaffold of kubebuilder gives to a program, so that its Deployment and
// its chart stay as they are.
package kubebuilder

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// AcceptFlags replaces the flags of kubebuilder's scaffold in the arguments of the process by those of package
// operator. It is the first statement of a program:
//
//	func main() {
//		kubebuilder.AcceptFlags()
//		operator.Main(controller.New(reconcile), secure.New())
//	}
//
// What each flag becomes:
//
//	--leader-election-id, --leader-election-namespace   --lease-name, --lease-namespace; nothing without --leader-elect
//	--health-probe-bind-address                         --listen-probes
//	--metrics-bind-address                              --listen-secure; --listen with --metrics-secure=false
//	--metrics-cert-path, -name, -key                    --tls-cert, --tls-key
//	--webhook-cert-path, -name, -key                    --webhook-cert, --webhook-key, and --webhooks=:9443
//	--webhook-port                                      --webhooks
//	--zap-log-level, --zap-devel                        -v
//
// The others of --zap-* and --enable-http2 are left out, with a warning if they ask for something that the program does
// not do. An address 0 stands for none. The flag --listen-secure needs the part of package operator/secure, and
// --webhook-cert needs one of package operator/webhook: a program without the part refuses the flag. So what was
// protected stays so. Other arguments stay as they are, and so do those behind "--".
//
// A flag that is not given has no effect. In the scaffold, --health-probe-bind-address is :8081 then.
//
// Each warning is a line on the standard error stream. A value that is not valid ends the process with the status 2.
// The program has no flags of these names in package operator's Program.
//
// own are the names of flags that the program has itself, such as webhook-cert-path for the webhooks of a manager of
// controller-runtime. They stay as they are.
func AcceptFlags(own ...string) {
	args, warnings, err := translate(os.Args[1:], own)
	for _, warning := range warnings {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Args = append(os.Args[:1:1], args...)
}

// translate returns args with flags of package operator in place of those of the scaffold, but for own.
func translate(args, own []string) (translated, warnings []string, err error) {
	var t translation
	for len(args) > 0 && args[0] != "--" {
		arg := args[0]
		args = args[1:]
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		target, isKnown := t.target(name)
		if !isKnown || !strings.HasPrefix(arg, "-") || slices.Contains(own, name) {
			t.rest = append(t.rest, arg)
			continue
		}
		if isBool := slices.Contains(boolFlags(), name); !hasValue && isBool {
			value = "true"
		} else if !hasValue {
			if len(args) == 0 {
				return nil, nil, fmt.Errorf("--%s has no value", name)
			}
			value, args = args[0], args[1:]
		} else if _, err := strconv.ParseBool(value); isBool && err != nil {
			return nil, nil, fmt.Errorf("--%s=%s: write true or false", name, value)
		}
		*target = value
	}
	if err := t.finish(); err != nil {
		return nil, nil, err
	}
	return slices.Concat(t.rest, t.added, args), t.warnings, nil
}

// boolFlags returns the names of the flags that need no value.
func boolFlags() []string {
	return []string{"leader-elect", "metrics-secure", "enable-http2", "zap-devel"}
}

// translation holds the values of the flags of the scaffold. A flag that is not given is empty.
type translation struct {
	leaderElect, leaseName, leaseNamespace              string
	probes, metrics, metricsSecure                      string
	metricsFolder, metricsCert, metricsKey              string
	webhookPort, webhookFolder, webhookCert, webhookKey string
	zapDevel, zapLevel, zapEncoder, zapStacks, zapTimes string
	http2                                               string

	// rest are the other arguments, and added are the flags in place of those of the scaffold.
	rest, added, warnings []string
}

// target returns the field for the value of a flag. It reports whether the flag is one of the scaffold.
func (t *translation) target(name string) (field *string, isKnown bool) {
	field = map[string]*string{
		"leader-elect": &t.leaderElect, "leader-election-id": &t.leaseName, "leader-election-namespace": &t.leaseNamespace,
		"health-probe-bind-address": &t.probes, "metrics-bind-address": &t.metrics, "metrics-secure": &t.metricsSecure,
		"metrics-cert-path": &t.metricsFolder, "metrics-cert-name": &t.metricsCert, "metrics-cert-key": &t.metricsKey,
		"webhook-port": &t.webhookPort, "webhook-cert-path": &t.webhookFolder, "webhook-cert-name": &t.webhookCert, "webhook-cert-key": &t.webhookKey,
		"zap-devel": &t.zapDevel, "zap-log-level": &t.zapLevel, "zap-encoder": &t.zapEncoder,
		"zap-stacktrace-level": &t.zapStacks, "zap-time-encoding": &t.zapTimes, "enable-http2": &t.http2,
	}[name]
	return field, field != nil
}

// finish adds the flags of package operator, and the warnings.
func (t *translation) finish() error {
	if isTrue(t.leaderElect) {
		t.add("leader-elect", "true")
		t.add("lease-name", t.leaseName)
		t.add("lease-namespace", t.leaseNamespace)
	}
	if t.probes != "0" {
		t.add("listen-probes", t.probes)
	}
	t.translateMetrics()
	if hasAddress := slices.ContainsFunc(t.rest, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name == "webhooks"
	}); !hasAddress && t.webhookPort+t.webhookFolder != "" {
		t.add("webhooks", ":"+cmp.Or(t.webhookPort, "9443")) // where the scaffold serves
	}
	if t.webhookFolder != "" {
		t.add("webhook-cert", path.Join(t.webhookFolder, cmp.Or(t.webhookCert, "tls.crt")))
		t.add("webhook-key", path.Join(t.webhookFolder, cmp.Or(t.webhookKey, "tls.key")))
	}
	if isTrue(t.http2) {
		t.warn("--enable-http2: the pages and the webhooks are served by HTTP/1.1")
	}
	return t.translateLog()
}

// translateMetrics adds the flags of the address for metrics.
func (t *translation) translateMetrics() {
	isSecure := t.metricsSecure == "" || isTrue(t.metricsSecure)
	switch {
	case t.metrics == "" || t.metrics == "0":
		if t.metricsFolder != "" {
			t.warn("--metrics-cert-path: no metrics are served without --metrics-bind-address")
		}
	case !isSecure:
		t.add("listen", t.metrics)
		if t.metricsFolder != "" {
			t.warn("--metrics-cert-path: the metrics are served without TLS, because of --metrics-secure=false")
		}
	default:
		t.add("listen-secure", t.metrics)
		if t.metricsFolder != "" {
			t.add("tls-cert", path.Join(t.metricsFolder, cmp.Or(t.metricsCert, "tls.crt")))
			t.add("tls-key", path.Join(t.metricsFolder, cmp.Or(t.metricsKey, "tls.key")))
		}
	}
}

// translateLog adds the flag -v.
func (t *translation) translateLog() error {
	level, err := strconv.Atoi(t.zapLevel)
	switch {
	case t.zapLevel == "" && isTrue(t.zapDevel), t.zapLevel == "debug":
		t.add("v", "true")
	case t.zapLevel == "", t.zapLevel == "info":
	case t.zapLevel == "error", t.zapLevel == "panic":
		t.warn("--zap-log-level=" + t.zapLevel + ": the log begins at the level info")
	case err != nil || level < 0:
		return errors.New("--zap-log-level=" + t.zapLevel + ": write debug, info, error, panic or a number")
	case level > 0:
		t.add("v", strconv.Itoa(level))
	}
	switch t.zapEncoder {
	case "", "json":
	case "console":
		t.warn("--zap-encoder=console: the log is text on a terminal, and JSON elsewhere")
	default:
		return errors.New("--zap-encoder=" + t.zapEncoder + ": write json or console")
	}
	if t.zapStacks != "" {
		t.warn("--zap-stacktrace-level: only the log lines of panics have a stack")
	}
	if t.zapTimes != "" {
		t.warn("--zap-time-encoding: times are written as in RFC 3339")
	}
	return nil
}

// add adds a flag, unless its value is empty.
func (t *translation) add(name, value string) {
	if value != "" {
		t.added = append(t.added, "--"+name+"="+value)
	}
}

func (t *translation) warn(text string) { t.warnings = append(t.warnings, text) }

// isTrue reports whether the value of a flag is true.
func isTrue(value string) bool {
	is, err := strconv.ParseBool(value)
	return err == nil && is
}
