package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/objstore"
)

// inBucket tells paths of what lies in an S3 bucket: Lance datasets, and datagen logs.
func inBucket(path string) bool { return strings.HasPrefix(path, "s3://") }

// storeOf opens what a dataset is in, a directory or a prefix of a bucket.
func storeOf(log string) (objstore.Store, error) {
	if inBucket(log) {
		return datagen.OpenRoot(log)
	}
	return objstore.OpenLocal(log, objstore.LocalOptions{})
}

// identifyInBucket is the path if there is a dataset, and an error if there is nothing.
func identifyInBucket(ctx context.Context, path string) (string, error) {
	store, err := storeOf(path)
	if err != nil {
		return "", err
	}
	for info, err := range store.List(ctx, objstore.ListOptions{Prefix: "_versions/"}) {
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(info.Key, ".manifest") {
			return path, nil
		}
	}
	return "", nil
}

// bucketSize is the objects of a dataset in a bucket.
func bucketSize(ctx context.Context, path string) (files, bytes, modifiedMS int64, err error) {
	store, err := storeOf(path)
	if err != nil {
		return 0, 0, 0, err
	}
	for info, err := range store.List(ctx, objstore.ListOptions{}) {
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, bytes, modifiedMS, err
		}
		files++
		bytes += info.Size
		modifiedMS = max(modifiedMS, info.Modified.UnixMilli())
	}
	return files, bytes, modifiedMS, nil
}

// refInBucket takes the path of a log in a bucket apart.
func refInBucket(path string) (ref logRef, ok bool) {
	root, rest, found := strings.Cut(path, "/"+datagen.Directory+"/")
	names := strings.Split(strings.TrimRight(rest, "/"), "/")
	if !inBucket(path) || !found || len(names) != 3 {
		return logRef{}, false
	}
	ref = logRef{root: root, pipeline: names[0], experiment: names[1]}
	return ref, ref.String() == strings.TrimRight(path, "/")
}

// inLog is the path of a file of a dataset.
func inLog(log, key string) string {
	if inBucket(log) {
		return log + "/" + key
	}
	return filepath.Join(log, filepath.FromSlash(key))
}
