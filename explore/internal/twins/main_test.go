package twins

import (
	"os"
	"testing"

	"github.com/yare-go/yare/internal/testkit/parallel"
)

func TestMain(m *testing.M) { os.Exit(parallel.RunTests(m)) }
