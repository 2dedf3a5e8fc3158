package main

var (
	wireMutants        []mutant
	laneMutants        []mutant
	scriptMutants      []mutant
	scriptGuardMutants []mutant
	syncMutants        []mutant
	grantMutants       []mutant
	metricsMutants     []mutant
)
