/*
Package fingerprint turns a request into a short, versioned digest, so that a
repeated request can be recognised and a changed one cannot pass for it.

	v1:sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae

Two requests have the same fingerprint exactly when they say the same thing:
the order of members, white space, string escapes and the form of a number do
not count; every value does.

# Reading

[Parse] accepts RFC 8259 and nothing else. On top of the grammar it refuses
what two readers could read as two different requests: a member name that
occurs twice in one object (compared after escapes are decoded, at any depth),
bytes that are not UTF-8, an escaped surrogate without its partner, a byte
order mark, and anything after the document. Documents nest at most [MaxDepth]
deep. A [*SyntaxError] says at which byte and why.

The result is a [Value]: a small immutable tree that keeps the order of the
members and the text of the numbers.

# Canonical form

[AppendCanonical] writes a value as RFC 8785 (JCS) does: no white space,
members ordered by the UTF-16 code units of their names, and in strings only
the escapes that are necessary. No Unicode normalisation takes place: "é" as one code
point and as two are different strings.

Numbers are decimals, exact and of any size, and this is their text:

 1. Zero, with whatever sign, fraction or exponent, is 0.
 2. Any other number is ±d₁d₂…dₖ × 10^(n−k), where d₁ and dₖ are not 0. These k
    digits and n are unique, and all of them are kept; none is rounded away.
 3. They are laid out as ECMAScript lays out the digits of a double:
    if k ≤ n ≤ 21, the digits and n−k zeros (1, 100, -20);
    if 0 < n ≤ 21, the digits with a point after the n-th (1.5);
    if -6 < n ≤ 0, "0.", -n zeros and the digits (0.002);
    otherwise d₁, a point and the rest if there is a rest, "e", the sign of
    n−1 always, and n−1 (1e+21, 1.5e-7).

This text is RFC 8785's wherever RFC 8785 is exact, that is, wherever the text
it writes still denotes the number that was sent: for every double printed with
the fewest digits that read back as it, which is how JavaScript, Go and Python
print one. RFC 8785 goes through a double, and where that changes the decimal
this package differs from it on purpose:

	sent                     RFC 8785               here
	9007199254740993         9007199254740992       9007199254740993
	1152921504606846976      1152921504606847000    1152921504606846976
	333333333.33333329       333333333.3333333      333333333.33333329
	1.000000000000000005     1                      1.000000000000000005
	1e400                    (error)                1e+400

(2^60, in the second line, is a value that a double holds; but RFC 8785 writes
it with the text of another decimal, which a client may also send.) An exponent may
have any number of digits: it is computed as text, and a number is never
expanded. 1e999999999999 is as short in canonical form as it came.

# Digests

[Of] is the fingerprint of a request as it was sent, [Normalised] that of the
same request after a kind's defaults and [Projection]. Both go through a
[Builder], which anything else that needs a fingerprint can use too, an HTTP
request for example: the purpose and every field carry their lengths, so that
no two different sets of fields give the same input to the hash.

# Telling what differs

[Differ] names the places where two values differ, as JSON Pointers and without
any value. A [Projection] says which parts of a request count at all.

Everything here is a pure function of its arguments. Values, projections and
errors are immutable and safe for concurrent use; a [Builder] belongs to one
goroutine.
*/
package fingerprint
