package engine

import (
	"context"

	"github.com/yare-go/yare/kube"
)

// Launcher starts processes of the operator that is explored.
type Launcher interface {
	// String returns the name of the operator.
	String() string
	// account returns the account whose permissions the operator has, or nil for an administrator.
	account() *Account
	// coverFolder returns the folder for the statements that have run. The folder is an empty string if
	// statements are not counted. Only a process that stops in order writes to the folder.
	coverFolder() string
	// launch starts a process. The process reaches the API server by the kubeconfig only.
	launch(s processSettings) (process, error)
	// close releases what the processes have had in common. All processes have ended.
	close() error
}

// processSettings are the settings of one process of an operator.
type processSettings struct {
	config *kube.Config
	// kubeconfig is the path of a file with the content of config.
	kubeconfig string
	namespace  string
	// relayAddress is the address by which the program reaches the external system. It is empty if there is none.
	relayAddress string
	// webhooks takes the calls of the API server to the program. It is nil if nothing has to stand between them.
	webhooks *webhookFront
	// folder is for files of the process, such as kubeconfig.
	folder string
	output *output
}

// activityFile returns the path of the file in which a program that uses yare writes whether it works.
func (s processSettings) activityFile() string { return s.kubeconfig + ".activity" }

// process is one process of an operator.
type process interface {
	// advance lets time pass for the process. It reports false if the process has the time of the machine.
	advance(ctx context.Context) (bool, error)
	// writeCoverage lets the process write which statements have run, if they are counted, and returns when it has ended.
	// Other processes go on.
	writeCoverage()
	// kill ends the process as a crash does, and returns when nothing of it runs any more. The process has
	// been cut off from the server before.
	kill()
	// isWorking reports whether a reconcile is under way, as far as the program shows that. A reconcile that works on an
	// external system sends no requests meanwhile.
	isWorking() bool
	// ended returns a channel that is closed when the process has ended.
	ended() <-chan struct{}
	// err returns why the process has ended by itself.
	err() error
}
