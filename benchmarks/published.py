"""The DiffAN paper's tables of 20-node graphs, typed from its appendix: mean and standard deviation.

Keys are (kind of graph, noise, method); 1000 rows, exact edge counts d or 5d, joint Gaussian-process mechanisms.
"""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    shd: tuple[float, float]
    sid: tuple[float, float]
    seconds: tuple[float, float]


_TABLES = """
ER1 exp     CAM            6.50  3.21   35.50 27.54  112.17 69.57
ER1 exp     DiffAN         7.67  4.68   38.83 24.94   30.07  1.60
ER1 exp     DiffAN-Greedy  6.67  4.68   34.17 18.37  121.66  4.19
ER1 exp     GraN-DAG      12.83  5.60   65.17 21.99  341.69 74.82
ER1 exp     SCORE          4.17  2.86   17.50 11.26   50.49 41.87
ER1 gauss   CAM            1.33  1.03    6.50  6.69   83.27 11.75
ER1 gauss   DiffAN         8.17  4.02   41.67 24.21   30.98  2.28
ER1 gauss   DiffAN-Greedy  3.33  2.16   18.33 11.40  129.10  9.54
ER1 gauss   GraN-DAG      10.50  8.62   44.50 37.90  304.07 17.39
ER1 gauss   SCORE          8.67  4.13   41.67 21.54   24.77  0.20
ER1 laplace CAM            0.83  0.98    4.00  6.96   90.85 15.49
ER1 laplace DiffAN         2.33  2.07    8.67  4.68   31.01  1.18
ER1 laplace DiffAN-Greedy  3.00  1.67   14.33  4.76  175.30 19.71
ER1 laplace GraN-DAG      10.33  5.82   41.17 24.98  302.00 16.23
ER1 laplace SCORE          4.17  3.43   24.17 19.57   26.62  1.88
ER5 exp     CAM           60.67  9.77  240.00 33.02  105.65 27.49
ER5 exp     DiffAN        67.50  4.32  278.83 22.83   30.33  2.12
ER5 exp     DiffAN-Greedy 63.00  6.07  266.33 50.25  186.21  3.28
ER5 exp     GraN-DAG      80.17  7.99  304.17 26.90  310.24 13.71
ER5 exp     SCORE         55.83  7.55  190.67 32.91   18.41  3.73
ER5 gauss   CAM           64.67  5.85  214.67 11.11  130.82 26.10
ER5 gauss   DiffAN        68.50  8.12  289.00 42.31   29.58  1.99
ER5 gauss   DiffAN-Greedy 63.17  6.18  228.83 32.86  178.17  7.17
ER5 gauss   GraN-DAG      81.00  6.72  273.00 46.72  319.17 18.81
ER5 gauss   SCORE         63.50  6.69  233.83 39.65   21.29  6.63
ER5 laplace CAM           68.00  7.04  228.50 27.86  157.70 22.55
ER5 laplace DiffAN        68.83  7.86  248.67 30.36   29.52  1.73
ER5 laplace DiffAN-Greedy 67.33  8.55  238.00 35.19  176.71  4.80
ER5 laplace GraN-DAG      82.67  6.47  271.33 35.19  305.29 13.93
ER5 laplace SCORE         66.33  7.09  218.67 25.81   23.01  4.33
SF1 exp     CAM            7.17  2.86   32.67 19.54   85.08 27.71
SF1 exp     DiffAN         8.67  2.80   38.67 20.99   29.23  1.36
SF1 exp     DiffAN-Greedy  9.17  2.32   35.33 17.26  183.80  4.81
SF1 exp     GraN-DAG      15.50  2.59   68.67 24.19  298.88  4.96
SF1 exp     SCORE          5.83  5.04   23.50 23.65   26.13  1.39
SF1 gauss   CAM            1.83  2.23    9.17 10.21   84.46 19.07
SF1 gauss   DiffAN         9.83  6.24   56.67 41.59   30.19  0.92
SF1 gauss   DiffAN-Greedy  7.33  5.32   46.83 38.42  175.63  8.82
SF1 gauss   GraN-DAG      12.17  2.71   46.67 16.22  299.25 13.14
SF1 gauss   SCORE          8.17  4.45   41.67 28.75   26.29  1.83
SF1 laplace CAM            2.83  3.92    7.83 10.93   85.15 21.84
SF1 laplace DiffAN         6.00  3.74   24.17 16.18   29.68  2.00
SF1 laplace DiffAN-Greedy  4.83  3.66   17.17 17.47  177.05  8.82
SF1 laplace GraN-DAG       9.50  3.27   35.67 20.84  295.12  2.88
SF1 laplace SCORE          5.67  3.50   22.50 15.27   26.39  1.79
SF5 exp     CAM           47.83  5.78  228.83 53.89  113.82 13.32
SF5 exp     DiffAN        46.83 11.48  243.50 34.68   30.03  2.17
SF5 exp     DiffAN-Greedy 43.50  6.89  236.83 23.17  173.13  3.52
SF5 exp     GraN-DAG      60.67  8.80  275.00 22.56  284.34  5.33
SF5 exp     SCORE         38.50  9.14  180.33 57.44   19.79  2.92
SF5 gauss   CAM           46.83  8.11  199.17 53.13  130.41 20.55
SF5 gauss   DiffAN        50.83  4.62  259.50 47.54   28.58  1.16
SF5 gauss   DiffAN-Greedy 45.17  6.15  224.17 41.80  174.90  3.69
SF5 gauss   GraN-DAG      61.67  4.03  241.67 43.11  292.77  7.29
SF5 gauss   SCORE         44.50  5.24  217.83 50.05   19.77  2.51
SF5 laplace CAM           49.50  9.01  191.33 27.43  160.53 23.16
SF5 laplace DiffAN        52.00  5.66  230.67 50.66   29.05  1.60
SF5 laplace DiffAN-Greedy 47.00  9.94  191.33 26.16  173.42  3.52
SF5 laplace GraN-DAG      65.00  7.13  262.50 44.23  295.40  7.72
SF5 laplace SCORE         46.67 10.03  193.83 34.14   43.84 27.14
"""


def _parse(line: str) -> tuple[tuple[str, str, str], Published]:
    kind, noise, method, *numbers = line.split()
    shd, shd_std, sid, sid_std, seconds, seconds_std = map(float, numbers)
    return (kind, noise, method), Published((shd, shd_std), (sid, sid_std), (seconds, seconds_std))


SYNTHETIC: dict[tuple[str, str, str], Published] = dict(_parse(line) for line in _TABLES.split("\n") if line)
