package contract_test

// The prose of docs/contracts.md. Everything else on that page is made from the data.

const docsIntro = `<!-- Made by "go generate ./contract" from the package's data. Do not edit. -->

# Contracts

Every API has its own rules for repeated requests. A contract holds these rules as data. The client reads it (may I send
this again? what does this answer prove?), the effect reads it (how do I recover after a crash?), the middleware reads it
(which contract do I offer?), and so does the probe (does this API keep what it promised?).

What the contract does not say, nobody assumes. Three shapes follow from the axes:

- **idempotent**: a key travels, the API says how long it is kept, and a second request does not run beside the first.
  After an unknown outcome the same call is made again, with the same key and the same bytes, inside the retention less a
  margin.
- **queryable**: an operation can be found without repeating it. After an unknown outcome it is looked up.
- **opaque**: neither. Unknown stays unknown until a person finds out.

A contract can be idempotent and queryable at once.
`

const docsEvidence = `
A body that is cut off, too large or no JSON has no machine code; an answer that can only be told from others by its code
is unknown then.

## What all transmissions prove together

A proof covers one transmission. Once one of them is unknown, a later "not sent" or "refused" changes nothing: the first
request may have arrived. Three things end an unknown outcome: an answer for that key, a look-up, or a person's verdict.
A refusal that the API gives only after it has looked the key up counts as such an answer for everything before it; a
replayed refusal counts for the key as a whole.

"Not found" is no proof of absence, because the first request may still be on its way. It becomes one when the contract
says so (look_up.absent_after), counted from the end of the lease plus the call's timeout.

## What happens next

`

const docsWriting = `A contract stands in the configuration file, as the name of a preset, as an object, or as an object laid over a preset:
objects are merged, everything else is replaced, null removes.

` + "```json\n%s\n```" + `

In words, as the console shows it:

%s

An answer is a status, or an object with status, code, at, header and value, of which every one that is given must match.
An answer with a code or a header is more exact than a bare status and is tried first. A bare 500, 502, 503 or 504 is never
believed: anybody on the way may have given it, or it may have come after the effect.

A contract is refused at start-up when a field is wrong, and when its retention is shorter than the retry budget.
`
