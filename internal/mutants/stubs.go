package main

var (
	wireMutants    []mutant
	laneMutants    []mutant
	syncMutants    []mutant
	grantMutants   []mutant
	metricsMutants []mutant
)
