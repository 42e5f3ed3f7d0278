package menuexport

import (
	"context"
	"encoding/json"
	"path"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// Contract returns what the generator promises when it is started with that
// contract: "idempotent", "queryable" or "opaque".
func Contract(name string) (contract.Contract, error) {
	c, err := contract.Preset(name)
	if name == "queryable" {
		// The generator answers within its own process, so a request that is not
		// there this long after its call has ended never will be.
		c.LookUp.AbsentAfter = contract.Duration(2 * time.Second)
	}
	return c, err
}

// A result is what an export leaves: the JSON form of an operation's result.
type result struct {
	ImageURL string `json:"image_url"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	SHA256   string `json:"sha256"`
}

// export is the call to the generator. It hands on everything to the HTTP effect
// but the address of the picture, which is on our side: see [Images].
type export struct{ *effect.HTTP }

// NewEffect makes the effect that calls the generator at that URL, under that
// contract.
func NewEffect(generatorURL string, c contract.Contract) (effect.Effect, error) {
	spec := effect.HTTPSpec{
		URL:     generatorURL + "/images",
		Refusal: effect.Reason{Code: "/code", Message: "/message"},
	}
	if c.Shape().Queryable {
		items := "/images"
		spec.LookUp = &effect.LookUpSpec{URL: generatorURL + "/images?key={key}", Items: &items, KeyAt: "/key"}
	}
	http, err := effect.NewHTTP(spec, nil)
	return export{http}, err
}

// Do makes the picture.
func (e export) Do(ctx context.Context, call *effect.Call) effect.Result {
	r := e.HTTP.Do(ctx, call)
	r.Output = ourAddress(call, r.Output)
	return r
}

// LookUp asks whether the picture was made.
func (e export) LookUp(ctx context.Context, call *effect.Call) effect.LookUpResult {
	r := e.HTTP.LookUp(ctx, call)
	r.Output = ourAddress(call, r.Output)
	return r
}

func ourAddress(call *effect.Call, output json.RawMessage) json.RawMessage {
	var image result
	if len(output) == 0 || json.Unmarshal(output, &image) != nil || image.ImageURL == "" {
		return output // left as it is: there was no answer, or not one that we know
	}
	image.ImageURL = "/menus/" + call.Key.ID + "/images/" + path.Base(image.ImageURL)
	text, _ := json.Marshal(image)
	return text
}
