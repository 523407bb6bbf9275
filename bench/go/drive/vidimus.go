package main

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"
)

const issueLeaf = "/vidimus.node.v1.NodeService/IssueLeaf"

// Field numbers of IssueLeafRequest and IssueLeafResponse.
const (
	fieldCSR         = 1
	fieldProfile     = 2
	fieldCertificate = 1
)

// vidimusCaller is one gRPC connection to a node.
type vidimusCaller struct {
	conn     *grpc.ClientConn
	messages [][]byte
}

// vidimusCallers encodes every message ahead, as the others' clients do.
func vidimusCallers(f issueFlags, requests []request) (func() (caller, error), error) {
	config, err := clientTLS(f.tls, f.name)
	if err != nil {
		return nil, err
	}
	messages := make([][]byte, len(requests))
	for at, request := range requests {
		message := protowire.AppendTag(nil, fieldCSR, protowire.BytesType)
		message = protowire.AppendBytes(message, request.DER)
		message = protowire.AppendTag(message, fieldProfile, protowire.BytesType)
		messages[at] = protowire.AppendString(message, f.profile)
	}
	return func() (caller, error) {
		conn, err := grpc.NewClient(f.address,
			grpc.WithTransportCredentials(credentials.NewTLS(config)),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})))
		return &vidimusCaller{conn, messages}, err
	}, nil
}

func (c *vidimusCaller) call(at int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var answer []byte
	if err := c.conn.Invoke(ctx, issueLeaf, &c.messages[at], &answer); err != nil {
		return nil, err
	}
	number, kind, n := protowire.ConsumeTag(answer)
	if n < 0 || number != fieldCertificate || kind != protowire.BytesType {
		return nil, errors.New("the answer doesn't begin with a certificate")
	}
	der, n := protowire.ConsumeBytes(answer[n:])
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	return der, nil
}

// bytesCodec sends and receives messages as they are on the wire.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
