// Package plot draws charts as SVG: lines and grouped bars, on linear and logarithmic axes, with the spread of each
// value. It requires only the standard library.
//
//	title                          ┐
//	subtitle                       │ head, as high as the legend needs
//	■ series   ■ series            ┘
//	  unit
//	  ▲ ┊   ╱─╂──                  whisker: least and greatest of the rounds
//	  │ ┊ ╱
//	  └─┴───┴───► label
//
// A chart is viewed in a browser beside text, in light or dark: colours follow prefers-color-scheme, on a background
// of their own, since an image does not know the page around it. Series also differ in the shape of their marks, for
// readers who do not see the colours. Text is text, and each mark has its figures as a title.
//
//	I1  A chart is well-formed XML, whatever its texts contain.
//	I2  Every mark, whisker and text anchor is within the picture, every mark within the axes.
//	I3  What cannot be drawn truthfully (no value, not a number, zero on a logarithmic axis) is an error.
//	I4  The same chart gives the same bytes.
package plot
