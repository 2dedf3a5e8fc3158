// Package integration has one Redis, and one client, in place of etcd's clusters.
package integration

import (
	"crypto/rand"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

type (
	ClusterConfig struct{ Size int } // not used
	Cluster       struct{ client *clientv3.Client }
	grpc          struct{ Auth *clientv3.Client }
)

func NewCluster(t testing.TB, _ *ClusterConfig) *Cluster {
	client, _ := NewClient(t, clientv3.Config{Endpoints: []string{rand.Text() + "/"}})
	return &Cluster{client}
}

func (c *Cluster) Client(int) *clientv3.Client  { return c.client }
func (c *Cluster) RandClient() *clientv3.Client { return c.client }
func (c *Cluster) Terminate(testing.TB)         { _ = c.client.Close() }

func NewClient(_ testing.TB, c clientv3.Config) (*clientv3.Client, error) { return clientv3.New(c) }

func MakeSingleNodeClients(_ testing.TB, c *Cluster, _ *[]*clientv3.Client) func() *clientv3.Client {
	return c.RandClient
}

var MakeMultiNodeClients = MakeSingleNodeClients

func BeforeTest(testing.TB)                       {}
func CloseClients(testing.TB, []*clientv3.Client) {}
func ToGRPC(c *clientv3.Client) grpc              { return grpc{c} }
