module go.etcd.io/etcd/tests/v3

require (
	github.com/stretchr/testify v1.11.1
	go.etcd.io/etcd/api/v3 v3.7.1
	go.etcd.io/etcd/client/v3 v3.7.1
)

replace go.etcd.io/etcd/client/v3 => ./client
