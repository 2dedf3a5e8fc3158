package main

var (
	watchdogMutants    []mutant
	wireMutants        []mutant
	laneMutants        []mutant
	scriptMutants      []mutant
	scriptGuardMutants []mutant
	syncMutants        []mutant
	grantMutants       []mutant
	metricsMutants     []mutant
)
