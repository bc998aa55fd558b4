"""Every method is a scikit-learn estimator: parameters in the constructor, results with a trailing underscore.

Run with: python examples/scikit_learn_style.py
"""

from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import diffan
from diffan.baselines import CAM

if __name__ == "__main__":
    truth = diffan.simulate.random_dag(5, 5, graph="er", seed=9)
    table = diffan.simulate.sample_anm(truth, 600, noise_scale=(0.4, 0.8), seed=9)

    model = CAM(cutoff=0.01, seed=0).fit(table)  # diffan.DiffAN() takes the same road, and longer
    print("adjacency:", model.adjacency_.tolist())
    print("order:", [str(model.feature_names_in_[i]) for i in model.order_])
    print("wrong edges:", diffan.metrics.shd(truth, model.discovery_.dag))

    stricter = clone(model).set_params(cutoff=1e-6).fit(table)
    print("no more edges at a stricter cutoff:", stricter.adjacency_.sum() <= model.adjacency_.sum())

    halved = make_pipeline(FunctionTransformer(lambda frame: frame / 2), CAM(cutoff=0.01, seed=0)).fit(table)
    print("units do not matter:", (halved[-1].adjacency_ == model.adjacency_).all())
