"""The learner under study: linear NOTEARS (Zheng, Aragam, Ravikumar and Xing, NeurIPS 2018)."""

import numpy as np
from scipy.linalg import expm
from scipy.optimize import minimize

LAMBDA1 = 0.1  # weight of the L1 penalty
THRESHOLD = 0.3  # weights below it are no edges
MAX_ITER = 100  # subproblems of the augmented Lagrangian
INNER_ITER = 200  # L-BFGS-B iterations per subproblem
H_TOL = 1e-8  # h(W) at which W counts as acyclic
RHO_MAX = 1e16  # the penalty grows no further
RHO_FACTOR = 10.0  # growth of the penalty when h(W) falls too slowly
H_DECREASE = 0.25  # ... that is, to more than this share of its last value


def acyclicity(W: np.ndarray) -> tuple[float, np.ndarray]:
    """Return h(W) = tr(exp(W∘W)) - d, which is 0 for DAGs only (Theorem 1), and its gradient exp(W∘W)ᵀ∘2W."""
    E = expm(W * W)
    return np.trace(E) - len(W), E.T * 2 * W


def notears(X: np.ndarray) -> np.ndarray:
    """Minimise F(W) = |X - XW|²/2n + LAMBDA1·|W|₁ subject to h(W) = 0 (equation 1) by Algorithm 1; returns W (d, d)."""
    d = X.shape[1]
    centred = X - X.mean(0)
    S = centred.T @ centred / len(X)  # all that the squared loss needs to know of X

    def weights(w: np.ndarray) -> np.ndarray:
        """W = W⁺ - W⁻: with both parts >= 0, |W|₁ is their sum, which is smooth."""
        positive, negative = w.reshape(-1, d, d)
        return positive - negative

    def lagrangian(w: np.ndarray, rho: float, alpha: float) -> tuple[float, np.ndarray]:
        """F + rho·h²/2 + alpha·h, and its gradient in both parts."""
        W = weights(w)
        residual = np.eye(d) - W
        h, h_gradient = acyclicity(W)
        value = np.sum(residual * (S @ residual)) / 2 + LAMBDA1 * w.sum() + rho * h * h / 2 + alpha * h
        gradient = ((rho * h + alpha) * h_gradient - S @ residual).ravel()
        return value, np.concatenate([gradient, -gradient]) + LAMBDA1

    bounds = [(0, 0) if i == j else (0, None) for _ in "+-" for i in range(d) for j in range(d)]
    w, rho, alpha, h = np.zeros(len(bounds)), 1.0, 0.0, np.inf
    for _ in range(MAX_ITER):
        limits = {"maxiter": INNER_ITER}
        found = minimize(lagrangian, w, (rho, alpha), "L-BFGS-B", jac=True, bounds=bounds, options=limits).x
        h_found, _ = acyclicity(weights(found))
        if h_found > H_DECREASE * h and rho < RHO_MAX:
            rho *= RHO_FACTOR  # and solve again from the same w
            continue
        w, h = found, h_found
        if h <= H_TOL or rho >= RHO_MAX:
            break
        alpha += rho * h  # dual ascent
    return weights(w)


def acyclic(W: np.ndarray) -> np.ndarray:
    """Take the edges of W from the strongest down, without those that would close a cycle; booleans (d, d)."""
    graph, reaches = np.zeros(W.shape, bool), np.eye(len(W), dtype=bool)
    for i, j in np.argwhere(W)[np.argsort(-np.abs(W[W != 0]))]:
        if not reaches[j, i]:
            graph[i, j] = True
            reaches |= np.outer(reaches[:, i], reaches[j])
    return graph


def learn(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the graph (d, d) of the columns of X (samples, d): entry [i, j] is true for an edge i -> j."""
    W = notears(X)
    return acyclic(np.where(np.abs(W) < THRESHOLD, 0, W))
