"""The exact losses of the ledger's loose rows: what was measured when the row was written, in epsilon.

A row that keeps its promise with something to spare would not notice less noise; its loss, which is computed and not
sampled, does. Where a mechanism is changed on purpose, so that its law is another one, the new loss is written here.
"""

PINS: dict[str, float] = {
    # core
    "discrete_laplace": 3.32467532,
    "tape_laplace": 3.66359313,
    "tape_gaussian": 4.67399597,
    # heavy_hitters
    "rappor_permanent": 2.13270285,
    # evolving
    "thresh_sentinel": 0.3,
    "thresh_tuned": 0.962586942,
    "heavy_thresh_sentinel": 0.3,
    "recompute_advanced": 0.646998217,
    "tree_future_rand": 0.282842712,
    "memoized_two_users": 0.454672588,
    "memoized_rappor": 0.661117124,
    "memoized_loloha": 1.40113549,
    # continual_mean
    "user_mean_naive": 0.8,
    "user_mean_naive_dropped": 0.8,
    "user_mean_wishful": 0.385656582,
    "user_mean_single_tree": 0.100372522,
    "user_mean_multiple_trees": 0.236473161,
    "user_mean_full": 426.072885,
    "user_mean_recommended": 0.999939404,
    "user_mean_recommended_long": 397.238283,
    "user_mean_recommended_fine": 396.313966,
    "user_mean_recommended_real": 393.190904,
    "user_mean_medians": 4.64500249,
    "private_median": 0.550267215,
    # sparse_vector
    "above_threshold_once": 0.946362251,
    "above_threshold_basic": 3.81157663,
    "above_threshold_advanced": 3.68933086,
    "above_threshold_optimal": 3.69236403,
    "above_threshold_single": 7.44472489,
    "above_threshold_renyi": 0.526981703,
    "threshold_monitor_step": 2.29271919,
    "threshold_monitor_users": 2.29271919,
    "threshold_monitor_run": 2.29271919,
    "threshold_monitor_fixed": 2.29271919,
    "threshold_monitor_elements": 2.01811398,
    "threshold_monitor_attained": 0.939842047,
    "threshold_monitor_interval": 0.21396578,
    "threshold_monitor_theorem_replacement": 5.54912173e-05,
    "threshold_monitor_theorem_add_remove": 0.000138839281,
    "threshold_monitor_epochs_replacement": 5.54912173e-05,
    "threshold_monitor_epochs_add_remove": 0.000138839281,
    "threshold_monitor_tight_proof_replacement": 0.0259203847,
    "threshold_monitor_tight_proof_add_remove": 0.0750292747,
    "threshold_monitor_renyi_replacement": 0.845178439,
    "threshold_monitor_renyi_add_remove": 0.836657947,
    "histogram_laplace_online": 0.854728019,
    "histogram_gaussian_online": 0.768252394,
    "histogram_stable_online": 0.837680066,
    "histogram_stable_gaussian_online": 0.65973906,
    "find_step_optimal": 6.01917922,
    "find_step_renyi": 0.250132287,
}
