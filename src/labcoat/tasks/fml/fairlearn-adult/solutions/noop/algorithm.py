"""The classifier under study: logistic regression, then one decision threshold per group."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# Nothing but this comment differs from the baseline.
MAX_ITER = 1000
# A person is predicted positive when the model's probability reaches the threshold of the person's group.
THRESHOLD_FEMALE = 0.5
THRESHOLD_MALE = 0.5


class Algorithm:
    """Predicts the label from features and group."""

    def __init__(self, columns: list[str], seed: int) -> None:
        """Take the names of the feature columns and the seed for anything random."""
        self.columns = columns
        self.model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITER, random_state=seed))

    def fit(self, X: np.ndarray, y: np.ndarray, group: np.ndarray) -> None:
        """Learn from features (rows, columns), labels 0/1 (rows,) and group 0/1 (rows,)."""
        self.model.fit(X, y)

    def predict(self, X: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Return one label 0/1 per row."""
        _, probability = self.model.predict_proba(X).T
        return probability >= np.where(group, THRESHOLD_MALE, THRESHOLD_FEMALE)
