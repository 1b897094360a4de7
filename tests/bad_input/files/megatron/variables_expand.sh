A=aaaaaaaaaa
B="$A $A $A $A $A $A $A $A $A $A "
C="$B $B $B $B $B $B $B $B $B $B "
D="$C $C $C $C $C $C $C $C $C $C "
E="$D $D $D $D $D $D $D $D $D $D "
F="$E $E $E $E $E $E $E $E $E $E "
G="$F $F $F $F $F $F $F $F $F $F "
H="$G $G $G $G $G $G $G $G $G $G "
I="$H $H $H $H $H $H $H $H $H $H "
J="$I $I $I $I $I $I $I $I $I $I "
K="$J $J $J $J $J $J $J $J $J $J "
L="$K $K $K $K $K $K $K $K $K $K "
M="$L $L $L $L $L $L $L $L $L $L "
pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 --global-batch-size 8 $M
