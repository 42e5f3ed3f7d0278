// Package generator is the external service of the menu export example: it
// turns a weekly menu into a PNG picture, over HTTP, with a storage of its own.
//
// It stands for somebody else's API. It knows nothing of the program that calls
// it, and what it promises about repeated requests is one of three contracts:
//
//   - [Idempotent]: a second POST with the same key is answered from the record,
//     with Idempotency-Replayed: true. The same key with another menu is 422
//     "mismatch"; a key whose picture is being made is 409 "in-progress".
//   - [Queryable]: keys are written down but do not deduplicate. A second POST
//     makes a second picture. GET /images?key=K lists what a key has made.
//   - [Opaque]: keys are ignored, and nothing can be looked up.
//
// # Interface
//
//	POST /images            a menu as JSON, Idempotency-Key header → 201 with the image
//	GET  /images?key=K      the images of a key, oldest first (not with [Opaque])
//	GET  /images/{id}.png   the picture, immutable, with ETag and ranges
//	GET  /stats             {"executions":n,"images":n}
//	GET  /faults            the faults in force
//	PUT  /faults            replace them; see [Faults]
//	GET  /faults/held       waits until a request or an answer is being held
//	GET  /healthz           200 while open
//
// The menu is described at [Menu]. The image is
//
//	{"image_id":"…","image_url":"/images/….png","width":800,"height":914,
//	 "sha256":"…","key":"…","created_at":"…"}
//
// where image_url is a path on this service. Errors are {"code","message"}, and
// "field" (a JSON Pointer, or the name of a header or query parameter) where one
// member is to blame.
//
// # What counts
//
// An execution is one picture rendered and stored. Its record is the last thing
// written, so executions is the number of records: it survives a restart and
// can't count an effect that is not there. A request whose client has gone away
// is carried out all the same, as most real services do.
//
// # Picture
//
// [Render] is a pure function: the same menu gives the same bytes. The font is
// embedded (see font/README.md), so no font need be installed.
package generator
