package sync_test

import _ "bootstrap/sync/shim"
