package optuna

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec below is registered by it
	"google.golang.org/grpc/mem"

	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// codec is the usual codec, but hands over a list of trials, which is a message's
// bytes already, as it is.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*pb.GetTrialsReply); ok && r != nil && len(r.Trials) == 0 {
		return mem.BufferSlice{mem.SliceBuffer(r.ProtoReflect().GetUnknown())}, nil
	}
	return c.CodecV2.Marshal(v)
}
