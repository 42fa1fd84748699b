"""`import shoal.ps` with PyTorch's and TensorFlow's CPU tensors, without a copy. Skipped where neither is installed."""
import os
import sys

BUILD = os.path.dirname(os.path.abspath(os.environ["SHOAL_BIN"]))
sys.path.insert(0, os.path.join(BUILD, "python"))


def need(name):
    try:
        return __import__(name)
    except ImportError as missing:
        print(f"{name}: skipped, {missing}")
        return None


def check_torch(torch, table):
    keys = torch.tensor([[5, 6], [7, 5]])
    out = torch.empty(2, 2, 4)
    assert table.pull(keys, out) is out and (out == 0).all()
    gradient = torch.ones(2, 2, 4)
    table.push(keys, gradient)
    table.pull(keys, out)
    assert (out[:, 0, 0] == torch.tensor([-2.0, -1.0])).all() and out[1, 1, 0] == -2, out
    watched = torch.ones(1, 4, requires_grad=True)
    table.push(torch.tensor([9]), watched)
    memory = torch.zeros(8, 4)
    table.pull(torch.tensor([9], dtype=torch.int32), memory[3:4])
    assert (memory[3] == -1).all() and memory.sum() == -4, memory
    for bad, words in ((torch.ones(2, 2, 4).double(), "float64"), (torch.ones(4, 8)[:, ::2], "not contiguous")):
        try:
            table.push(keys, bad)
            raise AssertionError("taken")
        except ValueError as error:
            assert words in str(error), error
    print("torch: ok")


def check_tensorflow(tensorflow, table):
    table.push(tensorflow.constant([20, 21], tensorflow.int64), tensorflow.ones([2, 4]))
    import numpy
    out = numpy.empty((2, 4), numpy.float32)
    table.pull(tensorflow.constant([20, 21]), out)
    assert (out == -1).all()
    print("tensorflow: ok")


def main():
    torch, tensorflow = need("torch"), need("tensorflow")
    if torch is None and tensorflow is None:
        sys.exit(77)
    import shoal.ps
    with shoal.ps.Server(token="t") as server:
        client = shoal.ps.connect([server.address], token="t")
        table = client.table("t", dim=4, optimizer="sgd", lr=1.0)
        if torch is not None:
            check_torch(torch, table)
        if tensorflow is not None:
            check_tensorflow(tensorflow, table)


if __name__ == "__main__":
    main()
