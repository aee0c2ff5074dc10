import torch


class Head(torch.nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.proj = torch.nn.Linear(width, classes)

    def forward(self, hidden):
        return self.proj(hidden)


def step(head, hidden, target, optimizer, scaler):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(head(hidden), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def main(batches):
    head = Head(256, 10).cuda()
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for hidden, target in batches:
        step(head, hidden, target, optimizer, scaler)
