"""A KernelBench-style file: y = relu(linear(x))."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = nn.Linear(inside, outside)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.rand(33, 65)]


def get_init_inputs():
    return [65, 47]
