package concurrency_test

import "crypto/rand"

var endpoints = []string{rand.Text() + "/"}

func exampleEndpoints() []string { return endpoints }

func forUnitTestsRunInMockedContext(_, example func()) { example() }
