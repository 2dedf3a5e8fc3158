// Package peers runs the tests that other libraries have for themselves over Anteroom. It has only tests.
//
//	the library's tests, as they are ──► testdata/<library>, its API by Anteroom's ──► Anteroom ──► Redis
//
// A file in testdata takes the place of the library's file of that name, and of nothing else. It uses what Anteroom
// exports, and knows no test. What cannot pass is listed with its reason, and must fail.
//
// Redisson's tests are in Java: TestRedisson does what they do, by their names.
package peers
