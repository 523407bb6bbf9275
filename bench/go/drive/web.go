package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"time"
)

// webCaller is one HTTP/1.1 connection (the cheapest for these servers) to a signing endpoint.
type webCaller struct {
	client      *http.Client
	url         string
	bodies      [][]byte
	certificate func(answer []byte) (string, error)
}

func (c *webCaller) call(at int) ([]byte, error) {
	response, err := c.client.Post(c.url, "application/json", bytes.NewReader(c.bodies[at]))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %.300s", response.Status, answer)
	}
	text, err := c.certificate(answer)
	return []byte(text), err
}

// webCallers gives every client its own connection.
func webCallers(f issueFlags, path string, bodies [][]byte, certificate func([]byte) (string, error)) (func() (caller, error), error) {
	config, err := clientTLS(f.tls, f.name)
	if err != nil {
		return nil, err
	}
	return func() (caller, error) {
		transport := &http.Transport{TLSClientConfig: config, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1}
		client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
		return &webCaller{client, "https://" + f.address + path, bodies, certificate}, nil
	}, nil
}

// stepCallers makes a one-time token for each request ahead.
func stepCallers(f issueFlags, requests []request) (func() (caller, error), error) {
	tokens, err := openTokenMaker(f.step, f.address)
	if err != nil {
		return nil, err
	}
	bodies := make([][]byte, len(requests))
	for at, request := range requests {
		token, err := tokens.token(request.Name)
		if err != nil {
			return nil, err
		}
		if bodies[at], err = json.Marshal(map[string]string{"csr": csrPEM(request), "ott": token}); err != nil {
			return nil, err
		}
	}
	return webCallers(f, "/1.0/sign", bodies, func(answer []byte) (string, error) {
		var parsed struct {
			Certificate string `json:"crt"`
		}
		err := json.Unmarshal(answer, &parsed)
		return parsed.Certificate, err
	})
}

func cfsslCallers(f issueFlags, requests []request) (func() (caller, error), error) {
	bodies := make([][]byte, len(requests))
	for at, request := range requests {
		var err error
		bodies[at], err = json.Marshal(map[string]any{
			"certificate_request": csrPEM(request), "hosts": []string{request.Name},
		})
		if err != nil {
			return nil, err
		}
	}
	return webCallers(f, "/api/v1/cfssl/sign", bodies, func(answer []byte) (string, error) {
		var parsed struct {
			Result struct {
				Certificate string `json:"certificate"`
			} `json:"result"`
		}
		err := json.Unmarshal(answer, &parsed)
		return parsed.Result.Certificate, err
	})
}

func csrPEM(r request) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: r.DER}))
}
